package delay

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/offsets"
)

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
		batch = w.notLeft(p, batch)
		err = w.leave(ctx, p, batch)
	}
	if err == nil {
		return
	}
	if len(batch) > 1 && isRefusal(err) { // one of them is to blame, and must not hold up the others
		for _, o := range batch {
			w.transact(ctx, p, []onward{o})
		}
		return
	}
	w.NoteGeneration(w.cl) // partitions that stay ours in a rebalance have a new one
	wait := cluster.FetchWait
	if isRefusal(err) {
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

// notLeft is what of a batch has not left already with a transaction whose end was not answered.
func (w *firer) notLeft(p *tierPartition, batch []onward) []onward {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(batch, func(o onward) bool { return p.done.Has(o.offset) })
}

// leave runs the transaction of a batch. No other commit of the partition may come before what it committed has taken
// effect here too: it would undo it.
func (w *firer) leave(ctx context.Context, p *tierPartition, batch []onward) error {
	if len(batch) == 0 {
		return nil
	}
	var records []*kgo.Record
	for _, o := range batch {
		records = append(records, o.record)
	}
	w.commits.Lock() // one that is under way is over
	w.mu.Lock()
	p.doubt = true
	w.mu.Unlock()
	w.commits.Unlock()
	doubt, err := p.out.Store(ctx, records, func(req *kmsg.TxnOffsetCommitRequest) error {
		req.MemberID, req.Generation = w.Known()
		t := kmsg.NewTxnOffsetCommitRequestTopic()
		t.Topic, t.Partitions = w.d.cluster.DelayTopic(), append(t.Partitions, w.commitWith(p, batch))
		req.Topics = append(req.Topics, t)
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

// commitWith is the commit of a partition as it is when a batch has left.
func (w *firer) commitWith(p *tierPartition, batch []onward) kmsg.TxnOffsetCommitRequestTopicPartition {
	w.mu.Lock()
	after := p.done.Clone()
	w.mu.Unlock()
	for _, o := range batch {
		after.Set(o.offset)
	}
	c := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	c.Partition, c.Offset, c.LeaderEpoch = p.id, after.Base, after.Seen
	c.Metadata = cluster.Text(after.Encode(offsets.MaxMetadata))
	return c
}
