package publisher

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/internal/refusal"
)

// publishWhole stores all messages or none.
func (d *Publisher) publishWhole(ctx context.Context, msgs []*driver.Message, o driver.PublishOptions,
	w within) ([]driver.Receipt, error) {
	rs := make([]driver.Receipt, len(msgs))
	if err := d.Refusal(ctx, o); err != nil {
		return rs, refusal.All(rs, err)
	}
	c, rs, err := d.PrepareAll(ctx, msgs, w)
	if err == nil {
		err = refusal.Of(rs)
	}
	if err != nil {
		c.Resolve(d.Dedup, false)
		return rs, refusal.All(rs, err)
	}
	if err = d.storeWhole(ctx, c); err != nil {
		return rs, refusal.All(rs, err)
	}
	c.receipts(rs, make([]error, len(c.Posts)))
	return rs, nil
}

// PrepareAll turns messages into records. While somebody else publishes an id of theirs it reserves none, and begins
// again after that.
func (d *Publisher) PrepareAll(ctx context.Context, msgs []*driver.Message, w within) (*Call, []driver.Receipt, error) {
	for {
		c, rs := newCall(len(msgs), w), make([]driver.Receipt, len(msgs))
		_, wait := d.prepareFrom(ctx, c, msgs, rs, 0)
		if wait == nil {
			return c, rs, nil
		}
		c.Resolve(d.Dedup, false)
		if err := d.await(ctx, wait); err != nil {
			return newCall(0, w), rs, err
		}
	}
}

// PrepareOne is prepareAll for a message that must be taken, however full its topic is.
func (d *Publisher) PrepareOne(ctx context.Context, m *driver.Message) (*Call, error) {
	c, rs, err := d.PrepareAll(ctx, []*driver.Message{m}, AnyNumber)
	return c, errors.Join(err, refusal.Of(rs))
}

// storeWhole runs the transaction of a call. It goes on when ctx ends.
func (d *Publisher) storeWhole(ctx context.Context, c *Call) error {
	if len(c.Posts) == 0 {
		return nil
	}
	return d.cluster.StoreTogether(ctx, 2*cluster.TransactFor, c.Records(), func(err error) {
		c.Resolve(d.Dedup, err == nil) // also when nobody knows: stored twice is better than never
	})
}

// Records are those of all messages.
func (c *Call) Records() []*kgo.Record {
	rs := make([]*kgo.Record, len(c.Posts))
	for n := range c.Posts {
		rs[n] = c.Posts[n].Record
	}
	return rs
}
