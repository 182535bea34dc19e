package consumer

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/offsets"
)

// together stores what a batch of settlements needs, and commits, in one transaction. An error other than ErrUnknown
// says that nothing of it is stored. No other commit of the partition may run meanwhile.
func (p *partition) together(ctx context.Context, batch []*settling) error {
	var rs []*kgo.Record
	for _, w := range batch {
		rs = append(rs, w.records()...)
	}
	var tag string
	doubt, err := p.emitter.Store(ctx, rs, func(req *kmsg.TxnOffsetCommitRequest) error {
		t := kmsg.NewTxnOffsetCommitRequestTopic()
		commit, m, err := p.commitWith(batch, req)
		tag, t.Topic, t.Partitions = m, p.m.mainName, append(t.Partitions, commit)
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
		return p.findOut(ctx, tag, err)
	}
	p.m.NoteGeneration(p.m.cl) // partitions that stay ours in a rebalance have a new one
	return notTogether(err)
}

func notTogether(err error) error {
	var known *driver.Error
	if errors.As(err, &known) && !errors.Is(err, driver.ErrUnknown) {
		return err
	}
	return driver.NewError(driver.ErrNotApplied, "the follow-ups and their outcome could not be stored in one transaction",
		"try again", err)
}

// commitWith is the commit of a partition as it is when a batch is settled.
func (p *partition) commitWith(batch []*settling, req *kmsg.TxnOffsetCommitRequest) (
	kmsg.TxnOffsetCommitRequestTopicPartition, string, error) {
	c := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	if p.lost || p.settleOver {
		return c, "", cluster.ErrLost("the partition went to another consumer")
	}
	req.MemberID, req.Generation = p.m.Known()
	p.transactions++
	tag := fmt.Sprintf("%c%d.%d;", offsets.TagPart, p.epoch, p.transactions)
	after, ending := p.done.Clone(), map[*Item]bool{}
	var offsets []int64
	for _, w := range batch {
		it := w.c.it
		if it == nil {
			return c, "", cluster.ErrLost("the partition went to another consumer")
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
		return c, "", driver.NewError(driver.ErrNotApplied, "too many messages of the partition are settled out of order "+
			"for one more to be committed", "settle the oldest, then try again", nil)
	}
	c.Partition, c.Offset, c.LeaderEpoch, c.Metadata = p.id, after.Base, after.Seen, &text
	p.dirty = false
	return c, tag, nil
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
	return driver.NewError(driver.ErrUnknown, "the follow-ups and their outcome may or may not be stored",
		"the message is delivered again if they are not", errors.Join(cause, err))
}
