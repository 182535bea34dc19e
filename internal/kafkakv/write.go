package kafkakv

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/kv"
)

// ids names records: a random begin for each process, and a number.
type ids struct {
	begin []byte
	last  *atomic.Uint64
}

func newIDs() ids {
	begin := make([]byte, 8)
	_, _ = rand.Read(begin) // never fails
	return ids{begin, new(atomic.Uint64)}
}

func (x ids) next() string {
	return string(binary.AppendUvarint(append([]byte(nil), x.begin...), x.last.Add(1)))
}

// pending is a record whose verdict somebody waits for.
type pending struct {
	id     string
	offset int64 // where it is stored; -1: not known
	result driver.WriteResult
	over   chan struct{} // closed when result is what became of it
}

// settle ends the waiting for a record. The partition is locked.
func (p *partition) settle(w *pending, r driver.WriteResult) {
	w.result = r
	delete(p.pending, w.id)
	close(w.over)
}

// patience bounds a write: what is not known by then is unknown.
const patience = 40 * time.Second

func unknown(err error) error {
	return driver.NewError(driver.ErrUnknown, "what became of the write is not known",
		"repeat it under the same request, or read the value", err)
}

func notSent(err error) error {
	return driver.NewError(driver.ErrNotApplied, "the write was not sent", "try again", err)
}

// Apply makes each write one step.
func (k *KV) Apply(ctx context.Context, bucket string, o driver.KVOptions, ws ...driver.Write) []driver.WriteResult {
	results := make([]driver.WriteResult, len(ws))
	var sound []int
	for i := range ws {
		if results[i].Err = k.check(bucket, o, &ws[i]); results[i].Err == nil {
			sound = append(sound, i)
		}
	}
	if len(sound) == 0 {
		return results
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	refuse := func(err error) []driver.WriteResult {
		for _, i := range sound {
			results[i].Err = err
		}
		return results
	}
	p, err := k.enter(ctx, bucket)
	if err != nil {
		return refuse(err)
	}
	defer p.leave()
	if !p.known() || p.broken() != nil { // who cannot read a verdict does not ask for one
		err = p.catchUp(ctx)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		if ctx.Err() != nil {
			err = notSent(err)
		}
		return refuse(err)
	}
	waiting := make([]*pending, len(sound))
	for n, i := range sound {
		id := k.ids.next()
		waiting[n] = p.send(ctx, id, bucket, encodeWrite(id, bucket, &ws[i]))
	}
	for n, i := range sound {
		results[i] = p.verdict(ctx, waiting[n])
		results[i].Value = owned(results[i].Value)
	}
	return results
}

func (k *KV) check(bucket string, o driver.KVOptions, w *driver.Write) error {
	if err := driver.CheckValueNames(bucket, w.Name); err != nil {
		return err
	}
	if !k.o.Levels.Gives(o.Level) {
		return k.o.Levels.Refuse(o.Level)
	}
	return w.Check()
}

// expect lets somebody wait for what becomes of a record.
func (p *partition) expect(id string) *pending {
	w := &pending{id: id, offset: -1, over: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pending[id] = w
	return w
}

// send stores a record, whose verdict is waited for. It may be stored after ctx ends, too.
func (p *partition) send(ctx context.Context, id, bucket string, value []byte) *pending {
	w := p.expect(id)
	r := &kgo.Record{Topic: p.k.o.Topic, Partition: p.id, Value: value}
	if bucket != "" {
		r.Key = []byte(bucket) // for whoever looks at the topic
	}
	p.k.o.Client.Produce(context.WithoutCancel(ctx), r, func(r *kgo.Record, err error) { p.stored(id, r.Offset, err) })
	return w
}

// stored is told what the brokers answered. Most verdicts are known by then.
func (p *partition) stored(id string, offset int64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.pending[id]
	switch {
	case w == nil:
	case err != nil:
		p.settle(w, driver.WriteResult{Err: p.k.o.Unsure("the write", err)})
	default:
		w.offset = offset
		p.giveUpPassed()
	}
}

// giveUpPassed ends the waiting for records that were read by nobody here: reading began anew behind them. The
// partition is locked.
func (p *partition) giveUpPassed() {
	if p.state == nil || !p.state.known {
		return
	}
	for _, w := range p.pending {
		if w.offset >= 0 && w.offset < p.state.next {
			p.settle(w, driver.WriteResult{Err: unknown(nil)})
		}
	}
}

// verdict waits for what became of a record.
func (p *partition) verdict(ctx context.Context, w *pending) driver.WriteResult {
	var err error
	select {
	case <-w.over:
		return w.result
	case <-ctx.Done():
		err = unknown(ctx.Err())
	case <-p.k.done:
		err = unknown(kv.ErrClosed())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending[w.id] != w {
		return w.result // it came meanwhile
	}
	delete(p.pending, w.id)
	return driver.WriteResult{Err: err}
}

// tickFor is how long a reader waits for its tick: brokers that store nothing can be read all the same.
const tickFor = 2 * time.Second

// sendTick stores a record that shows what time it is, and waits for it.
func (p *partition) sendTick(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, tickFor)
	defer cancel()
	id := p.k.ids.next()
	return p.verdict(ctx, p.send(ctx, id, "", encodeTick(id))).Err
}
