package consumer

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/record"
	"github.com/ferrymq/ferry/driver/kafka/internal/registry"
	"github.com/ferrymq/ferry/internal/envelope"
)

// Edited returns a copy of m with what an operator may change. The id stays.
func Edited(m, edit *driver.Message) *driver.Message {
	c := m.Clone()
	if edit != nil {
		e := edit.Clone()
		c.Body, c.ContentType, c.Headers, c.Key, c.Priority = e.Body, e.ContentType, e.Headers, e.Key, e.Priority
		c.MaxAttempts, c.Retry = e.MaxAttempts, e.Retry
	}
	return c
}

// Inserted is a message that is added to a group from outside of its owner, which finds it in its retry log.
func (d *Groups) Inserted(t *registry.TopicState, group string, msg *driver.Message, key string,
	s record.State) *kgo.Record {
	s.Insert, s.Loose, s.Tail, s.Cause, s.Offset, s.Order = true, true, true, driver.CauseReplay, -1, 1<<62
	r := loggedAs(d.cluster.RetryTopic(t.Name, group), d.registry.PartitionFor(t, msg.Key), key,
		envelope.Append(nil, msg), s)
	if msg.Key == "" && s.Ref.Sub == 0 {
		r.Partition = s.Ref.Partition
	}
	return r
}

// Taken waits until what was added to a group is in its queue, if this process owns the partition.
func (d *Groups) Taken(ctx context.Context, t *registry.TopicState, group string, r *kgo.Record) error {
	m := d.memberIn(t.Name, group)
	if m == nil {
		return nil
	}
	m.mu.Lock()
	p := m.parts[r.Partition]
	m.mu.Unlock()
	if p == nil {
		return nil
	}
	return p.retryLog.WaitFor(ctx, r)
}

// reschedule makes an item that waits due at another time, or another message.
func (m executor) reschedule(ctx context.Context, p *partition, c Command, edit *driver.Message) error {
	m.mu.Lock()
	it := p.find(c.Ref, c.ID)
	for it != nil && it.spilled {
		m.mu.Unlock()
		if err := m.saver.fill(ctx, it); err != nil {
			return err
		}
		m.mu.Lock()
		it = p.find(c.Ref, c.ID)
	}
	if it == nil || it.state != waiting || p.going {
		m.mu.Unlock()
		return ErrBusy(c.ID, driver.StateReady)
	}
	m.enter(it, inflight) // its old alarm rings in vain
	m.scheduled.Remove(&it.Node)
	old := it.Msg
	it.Msg = Edited(old, edit)
	if it.Msg.Key != "" && record.PartitionOf(old.Key, m.topic.Partitions) != record.PartitionOf(it.Msg.Key,
		m.topic.Partitions) {
		m.mu.Unlock()
		return m.executor.rekey(ctx, it, old, c.After)
	}
	rekeyed := it.Msg.Key != old.Key // otherwise it keeps its place: in strict order it never leaves the head of its key
	s := it.now()
	s.After, s.Loose, s.Tail, s.Cause = c.After, it.loose || rekeyed, it.Tail || rekeyed, driver.CauseReplay
	r := m.retryRecord(it, s)
	m.mu.Unlock()
	err := m.d.cluster.Produce(ctx, r)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		it.Msg = old
		m.wait(it)
		return err
	}
	it.cause, it.loose, it.Tail = s.Cause, s.Loose, s.Tail
	it.p.saved(it, r)
	m.back(it, c.After)
	return nil
}

// rekey moves an item to the partition of its new key: stored there first, then ended here.
func (m executor) rekey(ctx context.Context, it *Item, old *driver.Message, after time.Duration) error {
	r := m.d.Inserted(m.topic, m.group, it.Msg, fmt.Sprintf("k/%s/%s", it.Msg.ID, it.Ref),
		record.State{After: after, Ref: it.Ref, Attempts: it.attempts, Lost: it.lost, Once: it.once, Rounds: it.rounds,
			History: envelope.AppendHistory(nil, it.history...)})
	m.mu.Lock()
	end := m.endOf(it)
	m.mu.Unlock()
	err := m.d.cluster.Exchange(ctx, time.Now().Add(cluster.TransactFor), []*kgo.Record{r}, []*kgo.Record{end})
	m.mu.Lock()
	if err != nil {
		it.Msg = old
		m.wait(it)
		m.mu.Unlock()
		return err
	}
	m.remove(it)
	m.mu.Unlock()
	return m.d.Taken(ctx, m.topic, m.group, r)
}
