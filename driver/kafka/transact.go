package kafka

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ferrymq/ferry/driver"
)

// With Options.Transactions, follow-ups are stored in one transaction with the outcome of their parent and the commit of its partition. Each
// partition of a group has one transactional id: its next owner ends what the last one left open, and what a zombie still sends is refused.
const (
	transactFor   = 10 * time.Second // brokers end a transaction that is open for longer
	transactBatch = 500              // settlements in one transaction

	// transactionsKey in the meta topic says that somebody uses transactions.
	transactionsKey = "transactions"
)

func (d *Driver) transactionalID(topic, group string, partition int32) string {
	return fmt.Sprintf("%s:%d", d.groupID(topic, group), partition)
}

// announceTransactions tells everybody that owners of partitions may leave transactions open.
func (d *Driver) announceTransactions(ctx context.Context) error {
	if !d.o.Transactions || d.meta.get(transactionsKey) != nil {
		return nil
	}
	return d.putMeta(ctx, transactionsKey, struct{}{})
}

// endOpen ends the transactions that earlier owners of partitions left open: their commits are unstable, and hold up the next owner.
func (m *member) endOpen(ids []int32) {
	if m.d.meta.get(transactionsKey) == nil {
		return
	}
	ctx, cancel := context.WithTimeout(m.ctx, m.d.o.Session)
	defer cancel()
	for _, id := range ids {
		_ = m.d.fence(ctx, m.d.transactionalID(m.topic.name, m.group, id)) // then brokers end it, a little later
	}
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

// producer returns the transactional client of a partition. Only transact calls it.
func (p *partition) producer() (*kgo.Client, error) {
	p.m.mu.Lock()
	cl, lost := p.emitter, p.lost
	p.m.mu.Unlock()
	if lost {
		return nil, errLost("the partition went to another consumer")
	}
	if cl != nil {
		return cl, nil
	}
	d := p.m.d
	cl, err := kgo.NewClient(d.clientOptions(append(d.producerOptions(), kgo.TransactionTimeout(transactFor),
		kgo.TransactionalID(d.transactionalID(p.m.topic.name, p.m.group, p.id)))...)...)
	if err != nil {
		return nil, driver.NewError(driver.ErrInvalid, "the options of the client are wrong", "see Options", err)
	}
	p.m.mu.Lock()
	p.emitter, lost = cl, p.lost
	p.m.mu.Unlock()
	if lost {
		p.endProducer()
		return nil, errLost("the partition went to another consumer")
	}
	return cl, nil
}

// endProducer closes the transactional client; the next transaction makes another.
func (p *partition) endProducer() {
	p.m.mu.Lock()
	cl := p.emitter
	p.emitter = nil
	p.m.mu.Unlock()
	if cl != nil {
		cl.Close()
	}
}

// together stores what a batch of settlements needs, and commits, in one transaction. An error other than ErrUnknown says that nothing of it is stored.
// No other commit of the partition may run meanwhile.
func (p *partition) together(ctx context.Context, batch []*settling) error {
	cl, err := p.producer()
	if err != nil {
		return err
	}
	if err := cl.BeginTransaction(); err != nil {
		p.endProducer()
		return notTogether(err)
	}
	mark, err := p.stage(ctx, cl, batch)
	if err == nil {
		if err = cl.EndTransaction(ctx, kgo.TryCommit); err == nil {
			return nil
		}
		return p.findOut(ctx, mark, err)
	}
	aborted := cl.AbortBufferedRecords(ctx)
	if aborted == nil {
		aborted = cl.EndTransaction(ctx, kgo.TryAbort)
	}
	if aborted != nil {
		p.endProducer() // the next one fences what is left
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

// stage sends everything of a transaction but its end. The mark is in what it commits.
func (p *partition) stage(ctx context.Context, cl *kgo.Client, batch []*settling) (mark string, err error) {
	var rs []*kgo.Record
	for _, w := range batch {
		rs = append(rs, w.records()...)
	}
	for _, r := range cl.ProduceSync(ctx, rs...) {
		if r.Err != nil {
			return "", unsure("a follow-up", r.Err)
		}
	}
	id, epoch, err := cl.ProducerID(ctx)
	if err != nil {
		return "", err
	}
	name, group := p.m.d.transactionalID(p.m.topic.name, p.m.group, p.id), p.m.d.groupID(p.m.topic.name, p.m.group)
	add := kmsg.NewPtrAddOffsetsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch, add.Group = name, id, epoch, group
	added, err := add.RequestWith(ctx, cl)
	if err == nil {
		err = kerr.ErrorForCode(added.ErrorCode)
	}
	if err != nil {
		return "", err
	}
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group = name, id, epoch, group
	commit, mark, err := p.commitWith(batch, req)
	if err != nil {
		return "", err
	}
	t := kmsg.NewTxnOffsetCommitRequestTopic()
	t.Topic, t.Partitions = p.m.mainName, append(t.Partitions, commit)
	req.Topics = append(req.Topics, t)
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return "", err
	}
	for _, t := range resp.Topics {
		for _, c := range t.Partitions {
			err = errors.Join(err, kerr.ErrorForCode(c.ErrorCode))
		}
	}
	if err != nil {
		p.m.mu.Lock()
		p.dirty = true
		p.m.mu.Unlock()
	}
	return mark, err
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
	p.endProducer()
	p.m.mu.Lock()
	p.dirty = true
	p.m.mu.Unlock()
	d, m := p.m.d, p.m
	err := d.fence(ctx, d.transactionalID(m.topic.name, m.group, p.id))
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
