package kafka

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ferrymq/ferry/driver"
)

// With Options.Transactions, follow-ups are stored in one transaction with the outcome of their parent and the commit of
// its partition, and what leaves a tier of delays with the commit that says so. Each partition of a group, and of the
// tiers, has one transactional id: its next owner ends what the last one left open, and what a zombie still sends is refused.
const (
	transactFor   = 10 * time.Second // brokers end a transaction that is open for longer
	transactBatch = 500              // settlements in one transaction

	// transactionsKey in the meta topic says that somebody uses transactions.
	transactionsKey = "transactions"
)

// transactionalID is that of a partition of which a group, by its name on the brokers, has the offsets.
func transactionalID(group string, partition int32) string {
	return fmt.Sprintf("%s:%d", group, partition)
}

// transactor is of one of our partitions.
func (d *Driver) transactor(group string, partition int32) *transactor {
	return &transactor{d: d, id: transactionalID(group, partition), group: group}
}

// announceTransactions tells everybody that owners of partitions may leave transactions open.
func (d *Driver) announceTransactions(ctx context.Context) error {
	if !d.o.Transactions || d.meta.get(transactionsKey) != nil {
		return nil
	}
	return d.putMeta(ctx, transactionsKey, struct{}{})
}

// endOpen ends the transactions that earlier owners of partitions left open: their commits are unstable, and hold up the next owner.
func (d *Driver) endOpen(ctx context.Context, group string, ids []int32) {
	if d.meta.get(transactionsKey) == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, d.o.Session)
	defer cancel()
	var ending sync.WaitGroup
	for _, id := range ids {
		ending.Go(func() {
			_ = d.fence(ctx, transactionalID(group, id)) // then brokers end it, a little later
		})
	}
	ending.Wait()
}

// fence ends what is open under a transactional id, and refuses who used it until now.
func (d *Driver) fence(ctx context.Context, id string) error {
	for {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.TransactionalID, req.TransactionTimeoutMillis, req.ProducerID, req.ProducerEpoch = &id, int32(transactFor.Milliseconds()), -1, -1
		resp, err := req.RequestWith(ctx, d.client)
		if err == nil {
			err = kerr.ErrorForCode(resp.ErrorCode)
		}
		if !errors.Is(err, kerr.ConcurrentTransactions) {
			return err
		}
		if err := pause(ctx, fetchWait/5); err != nil {
			return err
		}
	}
}

// together stores what a batch of settlements needs, and commits, in one transaction. An error other than ErrUnknown says that nothing of it is stored.
// No other commit of the partition may run meanwhile.
func (p *partition) together(ctx context.Context, batch []*settling) error {
	var rs []*kgo.Record
	for _, w := range batch {
		rs = append(rs, w.records()...)
	}
	var mark string
	doubt, err := p.emitter.store(ctx, rs, func(req *kmsg.TxnOffsetCommitRequest) error {
		t := kmsg.NewTxnOffsetCommitRequestTopic()
		commit, m, err := p.commitWith(batch, req)
		mark, t.Topic, t.Partitions = m, p.m.mainName, append(t.Partitions, commit)
		req.Topics = append(req.Topics, t)
		return err
	})
	if err == nil {
		return nil
	}
	p.m.mu.Lock()
	p.dirty = true // the commit, if it was sent, has no effect or nobody knows
	p.m.mu.Unlock()
	if doubt {
		return p.findOut(ctx, mark, err)
	}
	p.m.noteGeneration(p.m.cl) // partitions that stay ours in a rebalance have a new one
	return notTogether(err)
}

func notTogether(err error) error {
	var known *driver.Error
	if errors.As(err, &known) && !errors.Is(err, driver.ErrUnknown) {
		return err
	}
	return driver.NewError(driver.ErrNotApplied, "the follow-ups and their outcome could not be stored in one transaction", "try again", err)
}

// commitWith is the commit of a partition as it is when a batch is settled.
func (p *partition) commitWith(batch []*settling, req *kmsg.TxnOffsetCommitRequest) (kmsg.TxnOffsetCommitRequestTopicPartition, string, error) {
	c := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	if p.lost || p.handed {
		return c, "", errLost("the partition went to another consumer")
	}
	req.MemberID, req.Generation = p.m.known()
	p.transactions++
	mark := fmt.Sprintf("%c%d.%d;", markPart, p.epoch, p.transactions)
	after, ending := p.done.clone(), map[*item]bool{}
	var offsets []int64
	for _, w := range batch {
		it := w.c.it
		if it == nil {
			return c, "", errLost("the partition went to another consumer")
		}
		if w.leaves() {
			ending[it] = true
			if it.offset >= 0 {
				after.set(it.offset)
				offsets = append(offsets, it.offset)
			}
		}
	}
	text, fits := p.metadataWith(mark, after, ending, offsets)
	if !fits {
		return c, "", driver.NewError(driver.ErrNotApplied, "too many messages of the partition are settled out of order for one more to be committed", "settle the oldest, then try again", nil)
	}
	c.Partition, c.Offset, c.LeaderEpoch, c.Metadata = p.id, after.base, after.seen, &text
	p.dirty = false
	return c, mark, nil
}

// findOut learns what became of a transaction whose end was not answered: first it is ended for good, then its commit is there or not.
func (p *partition) findOut(ctx context.Context, mark string, cause error) error {
	d, m := p.m.d, p.m
	err := d.fence(ctx, p.emitter.id)
	if err == nil {
		var at map[int32]kadm.Offset
		if at, err = d.committed(kadm.RequireStable(ctx), m.topic, m.group); err == nil {
			if strings.Contains(at[p.id].Metadata, mark) {
				return nil
			}
			return notTogether(cause)
		}
	}
	return driver.NewError(driver.ErrUnknown, "the follow-ups and their outcome may or may not be stored", "the message is delivered again if they are not", errors.Join(cause, err))
}
