package publisher

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/internal/refusal"
)

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

// PrepareAll turns messages into records, all or none. While somebody else publishes an id of theirs it reserves none,
// and begins again after that.
func (d *Publisher) PrepareAll(ctx context.Context, msgs []*driver.Message, o driver.PublishOptions,
	w within) (*Call, []driver.Receipt, error) {
	for {
		c, rs := newCall(len(msgs), w), make([]driver.Receipt, len(msgs))
		if err := d.Refusal(ctx, o); err != nil {
			return c, rs, err
		}
		_, wait := d.prepareFrom(ctx, c, msgs, rs, 0)
		err := refusal.Of(rs)
		if wait == nil && err == nil {
			return c, rs, nil
		}
		c.Resolve(d.Dedup, false)
		if wait != nil {
			err = d.await(ctx, wait)
		}
		if err != nil {
			return newCall(0, w), rs, err
		}
	}
}

// Records are those of all messages.
func (c *Call) Records() []*kgo.Record {
	rs := make([]*kgo.Record, len(c.Posts))
	for n := range c.Posts {
		rs[n] = c.Posts[n].Record
	}
	return rs
}
