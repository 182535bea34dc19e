package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
)

// Publish stores messages: those due now in their topic, the others among the delayed.
func (d *Driver) Publish(ctx context.Context, msgs []*driver.Message, o driver.PublishOptions) ([]driver.Receipt, error) {
	return d.publish(ctx, msgs, o)
}

// call is what the messages of one call have in common.
type call struct {
	stick int // how many in a row go to the same partition
	// Where the next without a key goes, and how many more after it.
	topic     *topicState
	partition int32
	left      int
}

// newCall is for n messages. Few are spread over all partitions; of many the partitions get long batches, which is cheaper for everybody.
func newCall(n int) *call { return &call{stick: max(1, n/2)} }

// place chooses a partition: by key, or in turn.
func (c *call) place(t *topicState, key string) int32 {
	if key != "" {
		return partitionOf(key, t.partitions)
	}
	if c.topic != t || c.left == 0 {
		c.topic, c.left = t, c.stick
		if c.stick <= t.partitions/2 {
			c.left = 1
		}
		c.partition = t.inTurn()
	}
	c.left--
	return c.partition
}

// inTurn is the next partition.
func (t *topicState) inTurn() int32 {
	return int32(atomic.AddUint32(&t.spread, 1) % uint32(t.partitions))
}

// posting is one message on its way.
type posting struct {
	record *kgo.Record
	by     *call
	claims []string // what it made us remember
	refer  func(*kgo.Record) driver.Ref
}

func (d *Driver) publish(ctx context.Context, msgs []*driver.Message, o driver.PublishOptions) ([]driver.Receipt, error) {
	rs := make([]driver.Receipt, len(msgs))
	if err := d.refusal(ctx, o); err != nil {
		for i := range rs {
			rs[i].Err = err
		}
		return rs, err
	}
	posts, by := make([]posting, len(msgs)), newCall(len(msgs))
	records, at := make([]*kgo.Record, 0, len(msgs)), make([]int, 0, len(msgs))
	for i, m := range msgs {
		posts[i].by = by
		if rs[i] = d.prepare(ctx, m, &posts[i]); posts[i].record != nil {
			records, at = append(records, posts[i].record), append(at, i)
		}
	}
	// What is not stored is forgotten, also when nobody knows: stored twice is better than never.
	answers := d.produceAnd(ctx, records, func(n int, err error) { d.known.resolve(posts[at[n]].claims, err == nil) })
	for n, err := range answers {
		if i := at[n]; err == nil {
			rs[i].Ref = posts[i].refer(records[n])
		} else {
			rs[i].Err = err
		}
	}
	var errs []error
	for i := range rs {
		if rs[i].Err != nil {
			errs = append(errs, rs[i].Err)
		}
	}
	return rs, errors.Join(errs...)
}

func (d *Driver) refusal(ctx context.Context, o driver.PublishOptions) error {
	switch {
	case d.isClosed():
		return errClosed()
	case !d.caps.Gives(o.Level):
		return driver.NewError(driver.ErrUnsupported, fmt.Sprintf("this cluster does not give %s", o.Level), fmt.Sprintf("it gives %s", d.caps.Durability), nil)
	case o.Atomic:
		return driver.NewError(driver.ErrUnsupported, "an atomic publish needs transactions, which this driver does not use yet", "publish without Atomic", nil)
	case ctx.Err() != nil:
		return driver.NewError(driver.ErrNotApplied, "the context has ended", "nothing was sent", ctx.Err())
	}
	return nil
}

// prepare turns a message into a record, or says why there is none.
func (d *Driver) prepare(ctx context.Context, m *driver.Message, p *posting) driver.Receipt {
	if err := m.Validate(d.caps.MaxBody); err != nil {
		return driver.Receipt{ID: m.ID, Err: err}
	}
	t, err := d.ensurePublished(ctx, m.Topic)
	if err != nil {
		return driver.Receipt{ID: m.ID, Err: d.notStored(err)}
	}
	if err := d.withinBound(ctx, t, m); err != nil {
		return driver.Receipt{ID: m.ID, Err: err}
	}
	first, fresh, err := d.remembered(ctx, m, p)
	if !fresh {
		d.known.resolve(p.claims, false)
		return driver.Receipt{ID: first, Duplicate: err == nil, Err: err}
	}
	if !m.PublishedAt.IsZero() { // the brokers' time counts
		c := *m
		c.PublishedAt = time.Time{}
		m = &c
	}
	if !m.At.IsZero() {
		if err := d.startClock(ctx); err != nil { // by the brokers' clock
			d.known.resolve(p.claims, false)
			return driver.Receipt{ID: m.ID, Err: d.notStored(err)}
		}
	}
	if wait, hold := d.waitOf(m); wait > 0 || hold {
		var w *delays
		if w, err = d.startDelays(ctx); err == nil && hold {
			p.record = w.heldRecord(m, state{})
		} else if err == nil {
			p.record = w.tierRecord(m, state{After: wait}, wait)
		}
		p.refer = laterRef
	} else {
		p.record = toRecord(t.main, p.by.place(t, m.Key), m)
		p.refer = refOf
	}
	if err != nil {
		d.known.resolve(p.claims, false)
		return driver.Receipt{ID: m.ID, Err: d.notStored(err)}
	}
	return driver.Receipt{ID: m.ID}
}

// notStored makes sure that an error of preparing says that nothing was stored.
func (d *Driver) notStored(err error) error {
	var e *driver.Error
	if errors.As(err, &e) && !errors.Is(err, driver.ErrUnknown) {
		return err
	}
	return driver.NewError(driver.ErrNotApplied, "the topic could not be prepared", "try again", err)
}

// place chooses a partition: by key, or in turn.
func (d *Driver) place(t *topicState, key string) int32 {
	if key != "" {
		return partitionOf(key, t.partitions)
	}
	return t.inTurn()
}

// waitOf is how long after its storing a message is due.
func (d *Driver) waitOf(m *driver.Message) (wait time.Duration, hold bool) {
	switch {
	case m.Delay == driver.Hold:
		return 0, true
	case !m.At.IsZero():
		return m.At.Sub(d.now()), false
	}
	return m.Delay, false
}

// ensurePublished makes a topic, and its default group when it has none.
func (d *Driver) ensurePublished(ctx context.Context, topic string) (*topicState, error) {
	d.mu.Lock()
	t := d.topics[topic]
	d.mu.Unlock()
	if t != nil && t.grouped.Load() {
		return t, nil
	}
	t, err := d.ensure(ctx, topic, topicRow{Implicit: true})
	if err != nil {
		return nil, err
	}
	if len(d.groupsOf(topic)) == 0 {
		err = d.ensureGroup(ctx, t, driver.DefaultGroup, groupRow{}, driver.Position{From: driver.FromBegin})
	}
	t.grouped.Store(err == nil)
	return t, err
}

// remembered claims the ids of a message. It waits for another call that publishes the same id: only what was stored makes a duplicate.
func (d *Driver) remembered(ctx context.Context, m *driver.Message, p *posting) (first string, fresh bool, err error) {
	if m.DedupID != "" {
		if first, fresh, err = d.claim(ctx, "d/"+m.Topic+"/"+m.DedupID, m.ID, m.DedupWindow, p); !fresh {
			return first, false, err
		}
	}
	if m.OwnID {
		if first, fresh, err = d.claim(ctx, "o/"+m.Topic+"/"+m.ID, m.ID, idWindow, p); !fresh {
			return first, false, err
		}
	}
	return m.ID, true, nil
}

func (d *Driver) claim(ctx context.Context, key, id string, window time.Duration, p *posting) (first string, fresh bool, err error) {
	for {
		first, fresh, open := d.known.claim(key, id, window, p.by)
		if fresh {
			p.claims = append(p.claims, key)
		}
		if open == nil {
			return first, fresh, nil
		}
		select {
		case <-open:
		case <-ctx.Done():
			return "", false, driver.NewError(driver.ErrNotApplied, "the same id is being published, and the context ended before it was known what became of it", "try again", ctx.Err())
		case <-d.done:
			return "", false, errClosed()
		}
	}
}
