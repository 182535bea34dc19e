package kv

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Local is the KV of a broker inside this process. It implements driver.KV.
type Local struct {
	o        LocalOptions
	mu       sync.Mutex
	revision uint64 // the newest of all buckets
	buckets  map[string]*Bucket
	saved    map[string]Saving // the newest step of each bucket
	waiters  *Waiters
	timer    *time.Timer // sweeps what has expired; nil: nothing has to be
	sweeps   sync.WaitGroup
}

// LocalOptions of a Local.
type LocalOptions struct {
	// Levels says what a write may ask for, and which level it has if it asks for none.
	Levels driver.Capabilities
	// Save stores what a step changed, whole and in the order of the calls, and never waits. Nil: nothing is stored.
	Save func(rs []Record, synced bool) Saving
	// Stopped says why nothing can be stored any more, or nil. Nil: never.
	Stopped func() error
}

// Saving waits for a step that is being stored. It returns when the step survives the process and, with synced, a power
// loss; otherwise an error of the seam.
type Saving func(ctx context.Context, synced bool) error

// NewLocal returns an empty Local.
func NewLocal(o LocalOptions) *Local {
	return &Local{o: o, buckets: map[string]*Bucket{}, saved: map[string]Saving{}, waiters: NewWaiters()}
}

// Close ends waiting calls with ErrClosed.
func (l *Local) Close() {
	l.mu.Lock()
	l.waiters.End()
	if l.timer != nil && l.timer.Stop() {
		l.sweeps.Done()
	}
	l.timer = nil
	l.mu.Unlock()
	l.sweeps.Wait()
}

// closed says why nothing is possible any more, or nil.
func (l *Local) closed() error {
	if l.waiters.Ended() {
		return ErrClosed()
	}
	if l.o.Stopped != nil {
		return l.o.Stopped()
	}
	return nil
}

// Get returns values by name.
func (l *Local) Get(ctx context.Context, bucket string, names ...string) ([]driver.Value, error) {
	if err := driver.CheckValueNames(bucket, names...); err != nil {
		return nil, err
	}
	vs := make([]driver.Value, len(names))
	err := l.read(ctx, bucket, func(b *Bucket, now time.Time) error {
		for i, name := range names {
			vs[i] = copied(b.Get(name, now))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return vs, nil
}

// read looks into a bucket, and returns when all that can be seen in it is stored as a write is: nobody must act on
// what a crash undoes.
func (l *Local) read(ctx context.Context, bucket string, look func(b *Bucket, now time.Time) error) error {
	l.mu.Lock()
	err := l.closed()
	if err == nil {
		err = look(l.bucket(bucket), time.Now())
	}
	newest := l.saved[bucket]
	l.mu.Unlock()
	if err != nil || newest == nil {
		return err
	}
	if err = newest(ctx, l.o.Levels.Durability >= driver.Synced); err != nil {
		return cmp.Or(l.closed(), ctx.Err(), err)
	}
	return nil
}

// copied gives a reader data of its own.
func copied(v driver.Value) driver.Value {
	v.Data = append([]byte(nil), v.Data...)
	return v
}

// bucket returns a bucket, an empty one if nothing was ever written in it.
func (l *Local) bucket(name string) *Bucket {
	if b := l.buckets[name]; b != nil {
		return b
	}
	return NewBucket(name, 0)
}

// List returns a page of a bucket.
func (l *Local) List(ctx context.Context, q driver.KVQuery) (page driver.KVPage, err error) {
	if err := q.Check(); err != nil {
		return driver.KVPage{}, err
	}
	err = l.read(ctx, q.Bucket, func(b *Bucket, now time.Time) error {
		page = b.List(q, now)
		for i := range page.Values {
			page.Values[i] = copied(page.Values[i])
		}
		return nil
	})
	if err != nil {
		return driver.KVPage{}, err
	}
	return page, nil
}

// Apply makes each write one step.
func (l *Local) Apply(ctx context.Context, bucket string, o driver.KVOptions, ws ...driver.Write) []driver.WriteResult {
	results := make([]driver.WriteResult, len(ws))
	saving := l.judge(bucket, o, ws, results)
	level := o.Level
	if level == 0 {
		level = l.o.Levels.Durability
	}
	var err error
	if saving != nil {
		err = saving(ctx, level >= driver.Synced)
	}
	for i := range results {
		// nor may what was found be stored
		if err != nil && (results[i].Err == nil || errors.Is(results[i].Err, driver.ErrConflict)) {
			results[i] = driver.WriteResult{Err: err}
		}
		results[i].Value = copied(results[i].Value)
	}
	return results
}

// judge applies writes, and returns what has to be stored before anybody is told of it, or nil.
func (l *Local) judge(bucket string, o driver.KVOptions, ws []driver.Write, results []driver.WriteResult) Saving {
	checked := false
	for i := range ws {
		results[i].Err = l.check(bucket, o, &ws[i])
		checked = checked || results[i].Err == nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.closed(); !checked || err != nil {
		for i := range results {
			if results[i].Err == nil {
				results[i].Err = err
			}
		}
		return nil
	}
	now := time.Now()
	b := l.buckets[bucket]
	if b == nil {
		b = NewBucket(bucket, l.revision)
		l.buckets[bucket] = b
	}
	step := step{bucket: b, now: now}
	for _, name := range b.Sweep(now, len(ws)+16) {
		step.forget(name)
	}
	for i := range ws {
		if results[i].Err != nil {
			continue
		}
		var effect Effect
		results[i], effect = b.Apply(&ws[i], now, l.revision+1)
		for _, name := range effect.Expired { // before the write, which may be of the same name
			step.forget(name)
		}
		for _, request := range effect.Forgotten {
			step.forgetRequest(request)
		}
		if effect.Applied {
			l.revision = b.revision
			step.note(&ws[i])
			if !ws[i].Quiet {
				l.waiters.Wake(bucket, ws[i].Name)
			}
		}
		if effect.Remembered {
			step.noteRequest(ws[i].Request)
		}
	}
	l.arm(now)
	if l.o.Save != nil && len(step.records) > 0 {
		l.saved[bucket] = l.o.Save(step.records, true)
	}
	return l.saved[bucket]
}

func (l *Local) check(bucket string, o driver.KVOptions, w *driver.Write) error {
	if err := driver.CheckValueNames(bucket, w.Name); err != nil {
		return err
	}
	if !l.o.Levels.Gives(o.Level) {
		return l.o.Levels.Refuse(o.Level)
	}
	return w.Check()
}

// Wait returns the value when its revision is another.
func (l *Local) Wait(ctx context.Context, bucket, name string, after uint64) (v driver.Value, err error) {
	err = l.waiters.Await(ctx, bucket, name, func() (bool, time.Duration, error) {
		vs, err := l.Get(ctx, bucket, name)
		if err != nil {
			return false, 0, err
		}
		v = vs[0]
		return v.Revision != after, Again(v), nil
	})
	return v, err
}

// Changes returns what was written after a revision.
func (l *Local) Changes(ctx context.Context, bucket string, after uint64) (vs []driver.Value, upTo uint64, err error) {
	err = l.waiters.Await(ctx, bucket, "", func() (bool, time.Duration, error) {
		vs, upTo, err = l.changed(ctx, bucket, after)
		return upTo > after, look, err
	})
	if err != nil {
		return nil, after, err
	}
	return vs, upTo, nil
}

func (l *Local) changed(ctx context.Context, bucket string, after uint64) (vs []driver.Value, upTo uint64, err error) {
	if err := driver.CheckName("bucket", bucket); err != nil {
		return nil, after, err
	}
	err = l.read(ctx, bucket, func(b *Bucket, now time.Time) error {
		var ok bool
		if vs, upTo, ok = b.Changes(after, now); !ok {
			return driver.ChangesForgotten(bucket, after)
		}
		for i := range vs {
			vs[i] = copied(vs[i])
		}
		return nil
	})
	return vs, upTo, err
}

// sweepPause is the least time between two sweeps: what has expired is absent already.
const sweepPause = time.Second

// arm sets the timer for what expires next.
func (l *Local) arm(now time.Time) {
	var next time.Time
	for _, b := range l.buckets {
		for _, end := range []time.Time{b.NextEnd(), b.requests.next()} {
			if !end.IsZero() && (next.IsZero() || end.Before(next)) {
				next = end
			}
		}
	}
	if next.IsZero() || l.waiters.Ended() || l.timer != nil {
		return
	}
	l.sweeps.Add(1)
	l.timer = time.AfterFunc(max(next.Sub(now), sweepPause), l.sweep)
}

// sweep forgets what has expired.
func (l *Local) sweep() {
	defer l.sweeps.Done()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = nil
	if l.waiters.Ended() {
		return
	}
	now := time.Now()
	for _, b := range l.buckets {
		step := step{bucket: b, now: now}
		for _, name := range b.Sweep(now, sweepMost) {
			step.forget(name)
		}
		for _, request := range b.requests.forget(now) {
			step.forgetRequest(request)
		}
		if l.o.Save != nil && len(step.records) > 0 {
			l.o.Save(step.records, false) // if it is lost, what was expired still is
		}
	}
	l.arm(now)
}

// sweepMost bounds one step, so that what expires together does not stop the others.
const sweepMost = 10_000
