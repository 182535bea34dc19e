package delay

import (
	"context"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver/kafka/internal/compacted"
)

// Change changes what is delayed or held, unless it is about to fire.
func (d *Delays) Change(ctx context.Context, x *Delayed, stamp int64, change compacted.Replacement) error {
	w, err := d.Start(ctx)
	if err == nil {
		err = w.mayChange(x)
	}
	if err != nil {
		return err
	}
	return w.change(ctx, x, stamp, change)
}

// Purge ends what is delayed for a topic now, and says how much it was.
func (d *Delays) Purge(ctx context.Context, topic string) (int, error) {
	w, err := d.Existing(ctx)
	if w == nil || err != nil {
		return 0, err
	}
	n, err := w.count(ctx, topic, -1)
	if n > 0 && err == nil {
		err = w.voidAll(ctx, topic)
	}
	return int(n), err
}

// EndAll ends all that is delayed or held for a topic.
func (d *Delays) EndAll(ctx context.Context, topic string) error {
	w, err := d.Existing(ctx)
	if w == nil || err != nil {
		return err
	}
	if err := w.voidAll(ctx, topic); err != nil {
		return err
	}
	if w.heldRows.Count(heldList(topic)) == 0 {
		return nil
	}
	return w.heldRows.EndEach(ctx, func(use func(*kgo.Record)) error {
		return d.cluster.ReadAll(ctx, d.cluster.HeldTopic(), func(r *kgo.Record) {
			if r.Value != nil && strings.HasPrefix(string(r.Key), heldKey(topic, "")) {
				use(r)
			}
		})
	})
}
