package consumer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/offsets"
	"github.com/ferrymq/ferry/driver/kafka/internal/publisher"
)

// together stores what a batch of settlements needs, and commits, in one transaction. An error other than ErrUnknown
// says that nothing of it is stored. No other commit of the partition may run meanwhile. It stands when the caller has
// gone; the first waits for connections.
func (p *partition) together(batch []*settling) error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*cluster.TransactFor)
	defer cancel()
	var rs []*kgo.Record
	for _, w := range batch {
		rs = append(rs, w.records()...)
	}
	var tag string
	doubt, err := p.emitter.Store(ctx, rs, func(req *kmsg.TxnOffsetCommitRequest) (err error) {
		tag, err = p.commitWith(batch, req)
		return err
	})
	if err == nil {
		return nil
	}
	p.m.mu.Lock()
	p.dirty = true // the commit, if it was sent, has no effect or nobody knows
	p.m.mu.Unlock()
	if doubt {
		return p.findOut(ctx, tag, err)
	}
	p.m.NoteGeneration(p.m.cl) // partitions that stay ours in a rebalance have a new one
	return notTogether(err)
}

func notTogether(err error) error {
	return cluster.NotApplied(err, "the follow-ups and their outcome could not be stored in one transaction", "try again")
}

// commitWith is the commit of a partition as it is when a batch is settled, and its tag.
func (p *partition) commitWith(batch []*settling, req *kmsg.TxnOffsetCommitRequest) (tag string, err error) {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	if p.lost || p.over {
		return "", cluster.ErrLost("the partition went to another consumer")
	}
	as := p.m.Known()
	p.transactions++
	tag = fmt.Sprintf("%c%d.%d;", offsets.TagPart, p.epoch, p.transactions)
	after, ending := p.done.Clone(), map[*Item]bool{}
	var offsets []int64
	for _, w := range batch {
		it := w.c.it
		if it == nil {
			return "", cluster.ErrLost("the partition went to another consumer")
		}
		if w.leaves() {
			ending[it] = true
			if it.offset >= 0 {
				after.Set(it.offset)
				offsets = append(offsets, it.offset)
			}
		}
	}
	text, fits := p.metadataWith(tag, after, ending, offsets)
	if !fits {
		return "", driver.NewError(driver.ErrNotApplied, "too many messages of the partition are settled out of order "+
			"for one more to be committed", "settle the oldest, then try again", nil)
	}
	as.AddTxnCommit(req, p.m.mainName, p.id, after, text)
	p.dirty, p.last = false, mark(after.Base, text) // if it fails, a stand-in has no effect until the next commit
	return tag, nil
}

// findOut learns what became of a transaction whose end was not answered: first it is ended for good, then its commit
// is there or not.
func (p *partition) findOut(ctx context.Context, tag string, cause error) error {
	d, m := p.m.d, p.m
	err := d.cluster.Fence(ctx, p.emitter.ID)
	if err == nil {
		var at map[int32]kadm.Offset
		if at, err = d.registry.Committed(kadm.RequireStable(ctx), m.topic, m.group); err == nil {
			if strings.Contains(at[p.id].Metadata, tag) {
				return nil
			}
			return notTogether(cause)
		}
	}
	return cluster.Unknown(errors.Join(cause, err), "the follow-ups and their outcome may or may not be stored",
		"the message is delivered again if they are not")
}

// emit publishes follow-ups, no later than their outcome. Those that go into a transaction with it are taken out of
// work and returned.
func (s *subscription) emit(ctx context.Context, work []*settling, errs []error) map[int]*settling {
	if !s.m.d.cluster.Settings.Transactions {
		s.emitFirst(ctx, work, errs)
		return nil
	}
	together := map[int]*settling{}
	for i, w := range work {
		if w == nil || len(w.o.Emit) == 0 {
			continue
		}
		if w.emits, _, errs[i] = s.m.d.publisher.PrepareAll(ctx, w.o.Emit, driver.PublishOptions{},
			publisher.AnyNumber); errs[i] != nil || len(w.emits.Posts) == 0 { // none, when all are known already
			continue
		}
		if errs[i] = s.m.transactions.enqueue(w); errs[i] == nil {
			together[i], work[i] = w, nil
		}
	}
	return together
}

// emitFirst publishes all follow-ups of a call together, before any of its outcomes.
func (s *subscription) emitFirst(ctx context.Context, work []*settling, errs []error) {
	var msgs []*driver.Message
	var of []int // which settlement each belongs to
	for i, w := range work {
		if w == nil {
			continue
		}
		for _, m := range w.o.Emit {
			msgs, of = append(msgs, m), append(of, i)
		}
	}
	if len(msgs) == 0 {
		return
	}
	// each receipt has its error
	receipts, _ := s.m.d.publisher.Publish(ctx, msgs, driver.PublishOptions{}, publisher.AnyNumber)
	for n, r := range receipts {
		errs[of[n]] = errors.Join(errs[of[n]], r.Err)
	}
}

// records are what a transaction stores for a settlement.
func (w *settling) records() (rs []*kgo.Record) {
	rs = w.emits.Records()
	for _, r := range []*kgo.Record{w.first, w.then} {
		if r != nil {
			rs = append(rs, r)
		}
	}
	return rs
}

// leaves reports whether after a settlement the offset of its item in the main topic is done.
func (w *settling) leaves() bool { return w.o.Outcome != driver.Release || w.first != nil }

// await waits for the transaction of a settlement. It stands when ctx ends before.
func (w *settling) await(ctx context.Context) error {
	select {
	case err := <-w.over:
		return err
	case <-ctx.Done():
		return driver.NewError(driver.ErrUnknown, "the context ended before the transaction",
			"it is likely stored: the message is delivered again if it is not", ctx.Err())
	}
}

// transactions settles with follow-ups, of each partition of a member in turn.
type transactions struct{ *member }

// enqueue hands a settlement to the transactions of its partition. It fails when the claim is lost.
func (m transactions) enqueue(w *settling) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if w.c.ended || m.ctx.Err() != nil {
		w.emits.Resolve(m.d.publisher.Dedup, false)
		return cluster.ErrLost("the partition went to another consumer")
	}
	o := *w.o // the caller's slice is not retained
	w.o, w.over = &o, make(chan error, 1)
	p := w.c.it.p
	p.emitting = append(p.emitting, w)
	if !p.transacting {
		p.transacting = true
		m.tasks.Go(func() { m.transactions.transact(p) })
	}
	return nil
}

// transact settles what waits, as much as there is in each transaction, until nothing is left. No commit may come
// before what a transaction committed has taken effect here too: it would undo it.
func (m transactions) transact(p *partition) {
	for {
		m.mu.Lock()
		n := min(len(p.emitting), cluster.TransactBatch)
		batch := p.emitting[:n:n]
		p.emitting = p.emitting[n:]
		p.transacting = n > 0
		m.mu.Unlock()
		if n == 0 {
			return
		}
		p.commits.Lock() // nothing else waits for this lock
		m.transactions.settleBatch(p, batch)
		p.commits.Unlock()
	}
}

// settleBatch settles some in one transaction, or each in one of its own if that fails: one of them may be to blame.
func (m transactions) settleBatch(p *partition, batch []*settling) {
	batch = slices.DeleteFunc(batch, m.refuseOutOfTurn)
	if len(batch) == 0 {
		return
	}
	err := p.together(batch)
	if err != nil && len(batch) > 1 && !errors.Is(err, driver.ErrUnknown) {
		for i := range batch {
			m.transactions.settleBatch(p, batch[i:i+1:i+1])
		}
		return
	}
	for _, w := range batch {
		m.transactions.ended(w, err)
	}
}

// refuseOutOfTurn ends a settlement whose key has an earlier one that failed, and reports whether it has.
func (m transactions) refuseOutOfTurn(w *settling) bool {
	m.mu.Lock()
	failed := !w.c.ended && m.failedAhead(w.c)
	m.mu.Unlock()
	if failed {
		m.transactions.ended(w, errNotInTurn())
	}
	return failed
}

// ended applies a settlement whose transaction has ended, and tells who waits.
func (m transactions) ended(w *settling, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w.emits.Resolve(m.d.publisher.Dedup, err == nil) // not when nobody knows: stored twice is better than never
	switch {
	case err == nil && !w.c.ended:
		w.c.sub.apply(w)
	case err == nil:
	case w.c.ended && !errors.Is(err, driver.ErrUnknown):
		err = cluster.ErrLost("the partition went to another consumer")
	default:
		m.keep(w)
	}
	w.over <- err
}
