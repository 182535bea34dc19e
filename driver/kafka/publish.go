package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/refusal"
)

// Publish stores messages: those due now in their topic, the others among the delayed.
func (d *Driver) Publish(ctx context.Context, msgs []*driver.Message, o driver.PublishOptions) ([]driver.Receipt, error) {
	return d.dispatch(ctx, ctx, msgs, o, true)()
}

var _ driver.Pipeliner = (*Driver)(nil)

// Send begins a Publish. What later calls send comes behind it.
func (d *Driver) Send(ctx context.Context, msgs []*driver.Message, o driver.PublishOptions) func() ([]driver.Receipt, error) {
	return d.dispatch(ctx, context.WithoutCancel(ctx), msgs, o, false)
}

// dispatch sends messages, and returns what waits for the answers until patience ends. Bodies are copied where they may change before that.
func (d *Driver) dispatch(ctx, patience context.Context, msgs []*driver.Message, o driver.PublishOptions, copied bool) func() ([]driver.Receipt, error) {
	if o.Atomic {
		rs, err := d.publishWhole(ctx, msgs, o)
		return func() ([]driver.Receipt, error) { return rs, err }
	}
	rs := make([]driver.Receipt, len(msgs))
	if err := d.refusal(ctx, o); err != nil {
		return func() ([]driver.Receipt, error) { return rs, refusal.All(rs, err) }
	}
	c := newCall(len(msgs))
	c.borrows = !copied
	for from := 0; ; {
		c.scratch = &scratch{lent: true}
		next, wait := d.prepareFrom(ctx, c, msgs, rs, from)
		p := d.post(ctx, c)
		if wait == nil {
			return func() ([]driver.Receipt, error) {
				c.receipts(rs, p.wait(patience))
				return rs, refusal.Of(rs)
			}
		}
		// Another call publishes the same id. Nobody may wait for us meanwhile.
		c.receipts(rs, p.wait(patience))
		c.posts, c.at = nil, nil
		if err := d.await(ctx, wait); err != nil {
			rs[next].ID, rs[next].Err = msgs[next].ID, err
			next++
		}
		from = next
	}
}

// prepareFrom turns messages into records, up to one whose id somebody else is publishing.
func (d *Driver) prepareFrom(ctx context.Context, c *call, msgs []*driver.Message, rs []driver.Receipt, from int) (next int, wait <-chan struct{}) {
	for i := from; i < len(msgs); i++ {
		var p posting
		if rs[i], wait = d.prepare(ctx, c, msgs[i], &p); wait != nil {
			return i, wait
		}
		if p.record != nil {
			c.posts, c.at = append(c.posts, p), append(c.at, i)
		}
	}
	return len(msgs), nil
}

// post sends what is prepared. What is not stored is forgotten, also when nobody knows: stored twice is better than never.
func (d *Driver) post(ctx context.Context, c *call) *production {
	records := make([]*kgo.Record, len(c.posts))
	for n := range c.posts {
		records[n] = c.posts[n].record
	}
	if !c.claims {
		return d.send(ctx, records, c.scratch, nil)
	}
	posts := c.posts
	return d.send(ctx, records, c.scratch, func(n int, err error) { d.known.resolve(posts[n].claims, err == nil) })
}

func (d *Driver) refusal(ctx context.Context, o driver.PublishOptions) error {
	switch {
	case d.isClosed():
		return refusal.Closed()
	case !d.caps.Gives(o.Level):
		return driver.NewError(driver.ErrUnsupported, fmt.Sprintf("this cluster does not give %s", o.Level), fmt.Sprintf("it gives %s", d.caps.Durability), nil)
	case o.Atomic && !d.o.Transactions:
		return driver.NewError(driver.ErrUnsupported, "an atomic publish needs transactions", "open with Options.Transactions (transactions=true), or publish without Atomic", nil)
	case ctx.Err() != nil:
		return driver.NewError(driver.ErrNotApplied, "the context has ended", "nothing was sent", ctx.Err())
	}
	return nil
}

// prepare turns a message into a record, or says why there is none. While somebody else publishes the same id it returns what to wait for.
func (d *Driver) prepare(ctx context.Context, c *call, m *driver.Message, p *posting) (driver.Receipt, <-chan struct{}) {
	if err := m.CheckPublish(d.caps.MaxBody); err != nil {
		return driver.Receipt{Err: err}, nil
	}
	if c.topic == nil || c.topic.name != m.Topic {
		t, err := d.ensurePublished(ctx, m.Topic)
		if err != nil {
			return driver.Receipt{ID: m.ID, Err: d.notStored(err)}, nil
		}
		c.topic, c.config = t, d.rowOf(t).Config
	}
	if err := d.withinBound(ctx, c.topic, c.config, m); err != nil {
		return driver.Receipt{ID: m.ID, Err: err}, nil
	}
	first, fresh, wait := d.remembered(m, c, p)
	if !fresh {
		d.known.resolve(p.claims, false)
		return driver.Receipt{ID: first, Duplicate: wait == nil}, wait
	}
	if err := d.fill(ctx, c, m, p); err != nil {
		d.known.resolve(p.claims, false)
		return driver.Receipt{ID: m.ID, Err: d.notStored(err)}, nil
	}
	return driver.Receipt{ID: m.ID}, nil
}

// fill makes the record of a message.
func (d *Driver) fill(ctx context.Context, c *call, m *driver.Message, p *posting) error {
	if !m.PublishedAt.IsZero() { // the brokers' time counts
		stored := *m
		stored.PublishedAt = time.Time{}
		m = &stored
	}
	if !m.At.IsZero() {
		if err := d.startClock(ctx); err != nil { // by the brokers' clock
			return err
		}
	}
	wait, hold := d.waitOf(m)
	if wait <= 0 && !hold {
		p.record = c.record(c.topic.main, c.place(c.topic, m.Key), m)
		return nil
	}
	w, err := d.startDelays(ctx)
	if err != nil {
		return err
	}
	if p.later = true; hold {
		p.record = w.heldRecord(m, state{})
	} else {
		p.record = w.tierRecord(m, state{After: wait}, wait)
	}
	return nil
}

// notStored makes sure that an error of preparing says that nothing was stored.
func (d *Driver) notStored(err error) error {
	var e *driver.Error
	if errors.As(err, &e) && !errors.Is(err, driver.ErrUnknown) {
		return err
	}
	return driver.NewError(driver.ErrNotApplied, "the topic could not be prepared", "try again", err)
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
