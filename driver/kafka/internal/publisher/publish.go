package publisher

import (
	"cmp"
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/delay"
	"github.com/ferrymq/ferry/driver/kafka/internal/record"
	"github.com/ferrymq/ferry/driver/kafka/internal/registry"
	"github.com/ferrymq/ferry/internal/refusal"
)

// Publisher stores messages.
type Publisher struct {
	cluster  *cluster.Cluster
	registry *registry.Registry
	delays   *delay.Delays
	Limits   driver.Capabilities
	Dedup    *dedupIDs
	// Stats estimates how many messages a topic holds, and how many bytes.
	Stats func(ctx context.Context, topic string) (driver.TopicStats, error)
}

// New is a publisher that has published nothing.
func New(c *cluster.Cluster, r *registry.Registry, w *delay.Delays) *Publisher {
	return &Publisher{cluster: c, registry: r, delays: w, Dedup: newDedupIDs()}
}

// Publish stores messages: those due now in their topic, the others among the delayed.
func (d *Publisher) Publish(ctx context.Context, msgs []*driver.Message, o driver.PublishOptions,
	w within) ([]driver.Receipt, error) {
	return d.Dispatch(ctx, ctx, msgs, o, w, true)()
}

// Dispatch sends messages, and returns what waits for the answers until patience ends. Bodies are copied where they may
// change before that.
func (d *Publisher) Dispatch(ctx, patience context.Context, msgs []*driver.Message, o driver.PublishOptions, w within,
	copied bool) func() ([]driver.Receipt, error) {
	if o.Atomic {
		rs, err := d.publishWhole(ctx, msgs, o, w)
		return func() ([]driver.Receipt, error) { return rs, err }
	}
	c, rs, err := d.prepareAll(ctx, msgs, o, func() *Call {
		c := newCall(len(msgs), w)
		c.borrows, c.scratch.Lent = !copied, true
		return c
	})
	if err != nil {
		return func() ([]driver.Receipt, error) { return rs, refusal.All(rs, err) }
	}
	var tell func(n int, err error)
	if c.reserves { // what is not stored is forgotten, also when nobody knows: stored twice is better than never
		tell = func(n int, err error) { d.Dedup.Resolve(c.Posts[n].Reserved, err == nil) }
	}
	p := d.cluster.Send(ctx, c.Records(), c.scratch, tell)
	return func() ([]driver.Receipt, error) {
		c.receipts(rs, p.Wait(patience))
		return rs, refusal.Of(rs)
	}
}

// prepareAll turns messages into records, and says in receipts why there is none of some. While somebody else publishes
// an id of theirs it reserves none, and begins again after that: nobody may wait for us meanwhile.
func (d *Publisher) prepareAll(ctx context.Context, msgs []*driver.Message, o driver.PublishOptions,
	begin func() *Call) (*Call, []driver.Receipt, error) {
	rs := make([]driver.Receipt, len(msgs))
	for {
		if err := d.Refusal(ctx, o); err != nil {
			return nil, rs, err
		}
		c := begin()
		var wait <-chan struct{}
		for i := 0; i < len(msgs) && wait == nil; i++ {
			p := Posting{of: i}
			rs[i], wait = d.prepare(ctx, c, msgs[i], &p)
			if p.Record != nil {
				c.Posts = append(c.Posts, p)
			}
		}
		if wait == nil {
			return c, rs, nil
		}
		c.Resolve(d.Dedup, false)
		if err := d.await(ctx, wait); err != nil {
			return nil, rs, err
		}
	}
}

// Refusal says why nothing can be published, or not so.
func (d *Publisher) Refusal(ctx context.Context, o driver.PublishOptions) error {
	switch {
	case d.cluster.IsClosed():
		return refusal.Closed()
	case !d.Limits.Gives(o.Level):
		return d.Limits.Refuse(o.Level)
	case o.Atomic && !d.cluster.Settings.Transactions:
		return driver.NewError(driver.ErrUnsupported, "an atomic publish needs transactions",
			"open with Options.Transactions (transactions=true), or publish without Atomic", nil)
	case ctx.Err() != nil:
		return refusal.NotStarted(ctx.Err())
	}
	return nil
}

// prepare turns a message into a record, or says why there is none. While somebody else publishes the same id it
// returns what to wait for.
func (d *Publisher) prepare(ctx context.Context, c *Call, m *driver.Message, p *Posting) (driver.Receipt,
	<-chan struct{}) {
	if err := m.CheckPublish(d.Limits.MaxBody); err != nil {
		return driver.Receipt{Err: err}, nil
	}
	if c.topic == nil || c.topic.Name != m.Topic {
		t, err := d.EnsurePublished(ctx, m.Topic)
		if err != nil {
			return driver.Receipt{ID: m.ID, Err: notStored(err)}, nil
		}
		c.topic, c.row = t, d.registry.RowOf(t)
	}
	if err := d.withinBound(ctx, c, m); err != nil {
		return driver.Receipt{ID: m.ID, Err: err}, nil
	}
	first, fresh, wait := d.reserveIDs(m, c, p)
	if !fresh {
		d.Dedup.Resolve(p.Reserved, false)
		return driver.Receipt{ID: first, Duplicate: wait == nil}, wait
	}
	if err := d.fill(ctx, c, m, p); err != nil {
		d.Dedup.Resolve(p.Reserved, false)
		return driver.Receipt{ID: m.ID, Err: notStored(err)}, nil
	}
	return driver.Receipt{ID: m.ID}, nil
}

// fill makes the record of a message.
func (d *Publisher) fill(ctx context.Context, c *Call, m *driver.Message, p *Posting) error {
	if !m.PublishedAt.IsZero() { // the brokers' time counts
		stored := *m
		stored.PublishedAt = time.Time{}
		m = &stored
	}
	wait, hold := m.Delay, m.Delay == driver.Hold
	if !m.At.IsZero() && !hold {
		if err := d.cluster.StartClock(ctx); err != nil { // by the brokers' clock
			return err
		}
		wait = m.At.Sub(d.cluster.Now())
	}
	if wait <= 0 && !hold {
		p.Record = c.record(c.topic.Main, c.partitionFor(c.topic, m.Key), m)
		return nil
	}
	w, err := d.delays.Start(ctx)
	if err != nil {
		return err
	}
	if p.later = true; hold {
		p.Record = w.HeldRecord(m, record.State{})
	} else {
		p.Record = w.TierRecord(m, record.State{After: wait}, min(wait, cmp.Or(m.TTL, wait)))
	}
	return nil
}

// notStored makes sure that an error of preparing says that nothing was stored.
func notStored(err error) error {
	return cluster.NotApplied(err, "the topic could not be prepared", "try again")
}

// EnsurePublished makes a topic, and its default group when it has none.
func (d *Publisher) EnsurePublished(ctx context.Context, topic string) (*registry.TopicState, error) {
	t := d.registry.Known(topic)
	if t != nil && t.Grouped.Load() {
		return t, nil
	}
	t, err := d.registry.Ensure(ctx, topic, registry.TopicRow{Implicit: true})
	if err != nil {
		return nil, err
	}
	if len(d.registry.GroupsOf(topic)) == 0 {
		err = d.registry.EnsureGroup(ctx, t, driver.DefaultGroup, registry.GroupRow{},
			driver.Position{From: driver.FromBegin})
	}
	t.Grouped.Store(err == nil)
	return t, err
}

// publishWhole stores all messages or none.
func (d *Publisher) publishWhole(ctx context.Context, msgs []*driver.Message, o driver.PublishOptions,
	w within) ([]driver.Receipt, error) {
	c, rs, err := d.PrepareAll(ctx, msgs, o, w)
	if err == nil && len(c.Posts) > 0 {
		err = d.cluster.StoreTogether(ctx, 2*cluster.TransactFor, c.Records(), func(err error) { // it goes on when ctx ends
			c.Resolve(d.Dedup, err == nil) // also when nobody knows: stored twice is better than never
		})
	}
	if err != nil {
		return rs, refusal.All(rs, err)
	}
	c.receipts(rs, make([]error, len(c.Posts)))
	return rs, nil
}

// PrepareAll turns messages into records, all or none.
func (d *Publisher) PrepareAll(ctx context.Context, msgs []*driver.Message, o driver.PublishOptions,
	w within) (*Call, []driver.Receipt, error) {
	c, rs, err := d.prepareAll(ctx, msgs, o, func() *Call { return newCall(len(msgs), w) })
	if err == nil {
		if err = refusal.Of(rs); err == nil {
			return c, rs, nil
		}
		c.Resolve(d.Dedup, false)
	}
	return newCall(0, w), rs, err
}

// Records are those of all messages.
func (c *Call) Records() []*kgo.Record {
	rs := make([]*kgo.Record, len(c.Posts))
	for n := range c.Posts {
		rs[n] = c.Posts[n].Record
	}
	return rs
}
