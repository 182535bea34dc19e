package redisstream

import (
	"context"
	"fmt"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
)

// repartition changes the number of partitions of a topic in which there is nothing: keys go elsewhere afterwards.
// First every partition is closed, which is refused where there is something; then the registry is changed; then they
// are opened. Until then publishing answers that it should be tried again. Whoever finds it half done, after a crash,
// finishes it.
func (d *Driver) repartition(ctx context.Context, t *topic, n int) (*topic, error) {
	for _, p := range t.Parts {
		reply, err := p.run(ctx, &d.scripts.split, "close", n)
		if err != nil {
			return nil, err
		}
		if reply.Text(0) == "busy" {
			if err := d.reopen(ctx, t); err != nil {
				return nil, err
			}
			return nil, d.otherPartitions(driver.ErrUnsupported, t, n, reply.Text(1))
		}
	}
	orders, err := d.client.HGetAll(ctx, t.Parts[0].sibling("groups")).Result()
	if err != nil {
		return nil, redisconn.Classify(err)
	}
	if err := d.topics.Resize(ctx, t, n); err != nil {
		return nil, err
	}
	for _, p := range t.Parts[min(n, len(t.Parts)):] {
		if _, err := p.run(ctx, &d.scripts.split, "drop"); err != nil {
			return nil, err
		}
	}
	d.topics.Forget(t)
	now := d.topics.Make(t.Name, n)
	if err := d.topics.Create(ctx, now); err != nil {
		return nil, err
	}
	for _, p := range now.Parts {
		for group, order := range orders {
			if order == "u" {
				order = ""
			}
			if _, err := p.join(ctx, membership{group: group, order: order}); err != nil {
				return nil, err
			}
		}
	}
	return d.topics.Learn(now), nil
}

// reopen opens partitions that were closed for a change that is not made.
func (d *Driver) reopen(ctx context.Context, t *topic) error {
	return t.Each(func(p *partition) error {
		_, err := p.run(ctx, &d.scripts.split, "open", len(t.Parts))
		return err
	})
}

func (d *Driver) otherPartitions(kind error, t *topic, n int, busy string) error {
	return driver.NewError(kind, fmt.Sprintf("topic %q has %d partitions and %s; with %d partitions keys would move",
		t.Name, len(t.Parts), busy, n),
		"pause publishing, let consumers drain the topic and stop them, remove dead letters, delayed messages and what is "+
			"kept (Purge, Trim), then try again", nil)
}
