// Package kafkakv keeps named values in a Kafka topic: a replicated state machine.
//
// Each write is one record that says what is to be written and under which condition. Every reader judges the records
// in the order of the log by the rule of internal/kv, with the time that the leader stored them at, so that all of them
// agree on which were applied. Whoever wrote one reads what became of it. Nobody holds a lock: a process that dies in
// the middle has written its record or has not. See docs/decisions/0018.
//
//	command    what a record says
//	replica    the state that records give
//	snapshot   that state written into the log, so that its begin can go
//	partition  a partition that this process follows: who waits for what
//	follow     reading it
//	write      writing, and waiting for the verdict
//	trim       when snapshots are written and the log is cut
//	estimate   what time it is at the leader, for readers
package kafkakv

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/kv"
)

// Options of a KV. All but the last two are required.
type Options struct {
	// Client stores records, in order and with acks=all, where they say, and carries requests.
	Client *kgo.Client
	// Reader makes a client with some more options, to follow a partition.
	Reader func(more ...kgo.Opt) (*kgo.Client, error)
	Topic  string
	// Prepare makes sure that the topic is there, and returns how many of its partitions are used: always as many.
	Prepare func(ctx context.Context) (partitions int, err error)
	// Place is the partition of a bucket.
	Place func(bucket string, partitions int) int32
	// Levels says what a write may ask for.
	Levels driver.Capabilities
	// Unsure and Unreached make errors of the seam of what a client answers: to a record, and to a question.
	Unsure, Unreached func(what string, err error) error
	// SnapshotEvery is after about how many bytes of log the state is written into it. Defaults to 4 MiB.
	SnapshotEvery int
	// Idle is for how long a partition is followed that nobody uses. Defaults to 5 min.
	Idle time.Duration
}

// KV is the named values of one topic. It implements driver.KV.
type KV struct {
	o       Options
	admin   *kadm.Client
	waiters *kv.Waiters
	ids     ids
	width   atomic.Int32 // partitions; 0: not known yet

	mu         sync.Mutex
	partitions map[int32]*partition
	done       chan struct{} // closed by Close
	ctx        context.Context
	cancel     context.CancelFunc
	tasks      sync.WaitGroup
}

// New returns a KV. Nothing is read or made before it is used.
func New(o Options) *KV {
	if o.SnapshotEvery <= 0 {
		o.SnapshotEvery = 4 << 20
	}
	if o.Idle <= 0 {
		o.Idle = 5 * time.Minute
	}
	k := &KV{o: o, admin: kadm.NewClient(o.Client), waiters: kv.NewWaiters(), ids: newIDs(),
		partitions: map[int32]*partition{}, done: make(chan struct{})}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	return k
}

// Close ends waiting calls with ErrClosed. The client is not closed.
func (k *KV) Close() {
	k.mu.Lock()
	if !k.waiters.Ended() {
		k.waiters.End()
		close(k.done)
	}
	k.mu.Unlock()
	k.cancel()
	k.tasks.Wait()
}

// spawn runs a task that ends with its context, unless the KV is closed.
func (k *KV) spawn(task func(ctx context.Context)) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.waiters.Ended() {
		return false
	}
	k.tasks.Go(func() { task(k.ctx) })
	return true
}

// enter returns the partition of a bucket, which is followed until it is left.
func (k *KV) enter(ctx context.Context, bucket string) (*partition, error) {
	if k.waiters.Ended() {
		return nil, kv.ErrClosed()
	}
	n := k.width.Load()
	if n == 0 {
		made, err := k.o.Prepare(ctx)
		if k.waiters.Ended() {
			return nil, kv.ErrClosed()
		}
		if err != nil {
			return nil, err
		}
		n = int32(made)
		k.width.Store(n)
	}
	p := k.partition(k.o.Place(bucket, int(n)))
	if !p.join() {
		return nil, kv.ErrClosed()
	}
	return p, nil
}

func (k *KV) partition(id int32) *partition {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.partitions[id]
	if p == nil {
		p = &partition{k: k, id: id, pending: map[string]*pending{}, moved: make(chan struct{})}
		k.partitions[id] = p
	}
	return p
}

// Get returns values by name: all that was written before the call is seen.
func (k *KV) Get(ctx context.Context, bucket string, names ...string) ([]driver.Value, error) {
	if err := driver.CheckValueNames(bucket, names...); err != nil {
		return nil, err
	}
	vs := make([]driver.Value, len(names))
	err := k.look(ctx, bucket, func(b *kv.Bucket, now time.Time) {
		for i, name := range names {
			vs[i] = owned(b.Get(name, now))
		}
	})
	if err != nil {
		return nil, err
	}
	return vs, nil
}

// owned gives a reader data of its own.
func owned(v driver.Value) driver.Value {
	v.Data = slices.Clone(v.Data)
	return v
}

// look reads a bucket as it is at the end of the log.
func (k *KV) look(ctx context.Context, bucket string, read func(b *kv.Bucket, now time.Time)) error {
	p, err := k.enter(ctx, bucket)
	if err != nil {
		return err
	}
	defer p.leave()
	if err := p.sync(ctx); err != nil {
		return err
	}
	p.read(bucket, read)
	return nil
}

// List returns a page of a bucket.
func (k *KV) List(ctx context.Context, q driver.KVQuery) (page driver.KVPage, err error) {
	if err := q.Check(); err != nil {
		return page, err
	}
	err = k.look(ctx, q.Bucket, func(b *kv.Bucket, now time.Time) {
		page = b.List(q, now)
		for i := range page.Values {
			page.Values[i] = owned(page.Values[i])
		}
	})
	return page, err
}

// Wait returns the value when its revision is another.
func (k *KV) Wait(ctx context.Context, bucket, name string, after uint64) (v driver.Value, err error) {
	if err := driver.CheckValueNames(bucket, name); err != nil {
		return v, err
	}
	err = k.await(ctx, bucket, name, func(b *kv.Bucket, now time.Time) (bool, time.Duration, error) {
		v = owned(b.Get(name, now))
		return v.Revision != after, kv.Again(v), nil
	})
	return v, err
}

// Changes returns what was written after a revision.
func (k *KV) Changes(ctx context.Context, bucket string, after uint64) (vs []driver.Value, upTo uint64, err error) {
	if err := driver.CheckName("bucket", bucket); err != nil {
		return nil, after, err
	}
	err = k.await(ctx, bucket, "", func(b *kv.Bucket, now time.Time) (bool, time.Duration, error) {
		var ok bool
		if vs, upTo, ok = b.Changes(after, now); !ok {
			return false, 0, driver.ChangesForgotten(bucket, after)
		}
		for i := range vs {
			vs[i] = owned(vs[i])
		}
		return upTo > after, time.Hour, nil
	})
	if err != nil {
		return nil, after, err
	}
	return vs, upTo, nil
}

// await looks at a bucket until it is as wanted: first with all that was written before the call, then when there are
// news, and once a second.
func (k *KV) await(ctx context.Context, bucket, name string,
	look func(b *kv.Bucket, now time.Time) (done bool, again time.Duration, err error)) error {
	p, err := k.enter(ctx, bucket)
	if err != nil {
		return err
	}
	defer p.leave()
	if err := p.sync(ctx); err != nil {
		return err
	}
	return k.waiters.Await(ctx, bucket, name, func() (done bool, again time.Duration, err error) {
		again = time.Hour
		if !p.read(bucket, func(b *kv.Bucket, now time.Time) { done, again, err = look(b, now) }) {
			err = p.broken()
		}
		return done, again, err
	})
}

// Followed is how many partitions are being followed.
func (k *KV) Followed() (n int) {
	k.mu.Lock()
	all := slices.Collect(maps.Values(k.partitions))
	k.mu.Unlock() // who holds a partition may want the KV
	for _, p := range all {
		p.mu.Lock()
		if p.followed {
			n++
		}
		p.mu.Unlock()
	}
	return n
}

// Damaged reads all partitions, and counts the records that mean nothing to anybody; the error is that of the last.
func (k *KV) Damaged(ctx context.Context) (n int, last, err error) {
	made, err := k.o.Prepare(ctx)
	if err != nil {
		return 0, nil, err
	}
	for id := range int32(made) {
		p := k.partition(id)
		if !p.join() {
			return n, last, kv.ErrClosed()
		}
		err := p.sync(ctx)
		p.mu.Lock()
		if p.state != nil && p.state.damaged > 0 {
			n, last = n+p.state.damaged, p.state.problem
		}
		p.mu.Unlock()
		p.leave()
		if err != nil {
			return n, last, err
		}
	}
	return n, last, nil
}
