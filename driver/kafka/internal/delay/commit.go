package delay

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/offsets"
)

// keep commits what fired every now and then.
func (w *firer) keep(ctx context.Context) {
	for cluster.Pause(ctx, cluster.CommitEvery) == nil {
		if err := w.commit(ctx); err != nil { // tried again with the next tick
			w.NoteGeneration(w.cl)
		}
	}
}

// clean removes what has left, and what means nothing any more.
func (w *firer) clean(ctx context.Context) {
	for cluster.Pause(ctx, sweepEvery) == nil {
		w.trim(ctx)
		w.mu.Lock()
		mine := w.parts[0] != nil
		w.mu.Unlock()
		if mine {
			w.sweep(ctx, w.d.cluster.Now())
		}
	}
}

// commit stores which of the owned partitions' messages have left.
func (w *firer) commit(ctx context.Context) error {
	w.commits.Lock() // an older commit must not overtake a newer one; nothing else waits for this lock
	defer w.commits.Unlock()
	var sent []*tierPartition
	w.mu.Lock()
	req, t := w.CommitAs(w.d.cluster.DelayTopic(), w.d.cluster.DelayTopic())
	for _, p := range w.parts {
		if p.dirty && !p.doubt {
			p.dirty = false
			sent = append(sent, p)
			t.Partitions = append(t.Partitions, cluster.CommitOf(p.id, p.done, p.done.Encode(offsets.MaxMetadata)))
		}
	}
	w.mu.Unlock()
	if len(sent) == 0 {
		return nil
	}
	err := cluster.SendCommit(ctx, w.d.cluster.Client, req)
	if err != nil {
		w.mu.Lock()
		for _, p := range sent {
			p.dirty = true
		}
		w.mu.Unlock()
	}
	return err
}

// trim deletes what all have left behind.
func (w *firer) trim(ctx context.Context) {
	low := map[int32]int64{}
	w.mu.Lock()
	for id, p := range w.parts {
		if !p.dirty && p.done.Base > p.trimmed {
			low[id], p.trimmed = p.done.Base, p.done.Base
		}
	}
	w.mu.Unlock()
	_ = w.d.cluster.DeleteBefore(ctx, w.d.cluster.DelayTopic(), low) // only room: tried again when more has left
}

// With Options.Transactions, what leaves a partition of the tiers is stored in one transaction with the commit that
// says so: whoever is killed when, it has left or it has not. The next owner ends what the last one left open before it
// reads the offsets. A process that was stopped meanwhile commits nothing: neither its transactional id nor its
// generation holds any more.

// maxSpread is how far beyond the first message of a partition that has not left another may leave: the commit must
// name all that have, with a bit each.
const maxSpread = 24_000

// spread reports whether a message lies too far from the first that has not left to leave before it.
func (p *tierPartition) spread(x *Delayed) bool { return x.offset-p.done.Base >= maxSpread }

// storeTogether stores messages where they go next and that they have left: a transaction for each partition, side by
// side.
func (w *firer) storeTogether(ctx context.Context, leaving []onward) {
	batches := map[*tierPartition][]onward{}
	for _, o := range leaving {
		batches[o.p] = append(batches[o.p], o)
	}
	var running sync.WaitGroup
	for p, batch := range batches {
		running.Go(func() { w.transact(ctx, p, batch) })
	}
	running.Wait()
}

// transact stores what leaves a partition, and that it has left, or nothing of it.
func (w *firer) transact(ctx context.Context, p *tierPartition, batch []onward) {
	err := w.settleDoubt(ctx, p)
	if err == nil {
		w.mu.Lock() // some may have left with a transaction whose end was not answered
		batch = slices.DeleteFunc(batch, func(o onward) bool { return p.done.Has(o.offset) })
		w.mu.Unlock()
		err = w.leave(ctx, p, batch)
	}
	if err == nil {
		return
	}
	refused := isRefusal(err)
	if len(batch) > 1 && refused { // one of them is to blame, and must not hold up the others
		for _, o := range batch {
			w.transact(ctx, p, []onward{o})
		}
		return
	}
	w.NoteGeneration(w.cl) // partitions that stay ours in a rebalance have a new one
	wait := cluster.FetchWait
	if refused {
		wait = time.Second
	}
	for _, o := range batch {
		w.retry(o.Delayed, w.d.cluster.Now().Add(wait))
	}
}

// isRefusal reports whether brokers do not take a record, because it is too large for instance.
func isRefusal(err error) bool {
	var known *driver.Error
	return errors.As(err, &known) && !errors.Is(err, driver.ErrUnknown) && !errors.Is(err, driver.ErrLeaseLost)
}

// settleDoubt learns what became of a transaction whose end was not answered: first it is ended for good, then what is
// committed tells.
func (w *firer) settleDoubt(ctx context.Context, p *tierPartition) error {
	w.mu.Lock()
	doubt, lost := p.doubt, p.lost
	w.mu.Unlock()
	if lost { // its id is that of another owner
		return cluster.ErrLost("the partition went to another consumer")
	}
	if !doubt {
		return nil
	}
	if err := w.d.cluster.Fence(ctx, p.out.ID); err != nil {
		return err
	}
	at, err := w.d.cluster.CommittedOf(kadm.RequireStable(ctx), w.d.cluster.DelayTopic(), w.d.cluster.DelayTopic())
	if err != nil {
		return err
	}
	stored := offsets.Committed(at[p.id])
	w.mu.Lock()
	defer w.mu.Unlock()
	for off := p.done.Base; off < stored.Known(); off++ {
		if stored.Has(off) {
			p.done.Set(off)
		}
	}
	p.doubt, p.dirty = false, true
	return nil
}

// leave runs the transaction of a batch. No other commit of the partition may come before what it committed has taken
// effect here too: it would undo it.
func (w *firer) leave(ctx context.Context, p *tierPartition, batch []onward) error {
	if len(batch) == 0 {
		return nil
	}
	w.commits.Lock() // one that is under way is over
	w.mu.Lock()
	p.doubt = true
	w.mu.Unlock()
	w.commits.Unlock()
	doubt, err := p.out.Store(ctx, recordsOf(batch), func(req *kmsg.TxnOffsetCommitRequest) error {
		as := w.Known()
		w.mu.Lock()
		after := p.done.Clone()
		w.mu.Unlock()
		for _, o := range batch {
			after.Set(o.offset)
		}
		as.AddTxnCommit(req, w.d.cluster.DelayTopic(), p.id, after, after.Encode(offsets.MaxMetadata))
		return nil
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	p.doubt = doubt
	if err == nil {
		for _, o := range batch {
			p.done.Set(o.offset)
		}
	}
	return err
}
