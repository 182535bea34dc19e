package rig

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ferrymq/ferry/driver"
)

// Endure runs load and faults without histories, for as long as Load says, while watch looks on. In the end everything
// must be settled, and the broker's counters must balance.
func Endure(ctx context.Context, o Options, watch func(context.Context, driver.Driver) error) error {
	o = o.withDefaults()
	o.Dir = ""
	b, err := lookup(o.Broker)
	if err != nil {
		return err
	}
	if b.owned {
		return fmt.Errorf("nobody can look into %s while its process runs: soak a program of yours, or another broker", o.Broker)
	}
	s, err := b.open(ctx, o)
	if err != nil {
		return err
	}
	log, err := o.history("harness")
	if err != nil {
		return errors.Join(err, s.close(ctx))
	}
	watching, end := context.WithCancel(ctx)
	var watched error
	var looking sync.WaitGroup
	looking.Go(func() { watched = s.look(watching, func(d driver.Driver) error { return watch(watching, d) }) })
	err = play(ctx, o, b, s, log)
	end()
	looking.Wait()
	if err == nil {
		err = s.look(ctx, func(d driver.Driver) error { return balanced(ctx, d) })
	}
	return errors.Join(err, watched, s.close(context.WithoutCancel(ctx)))
}

// balanced compares the broker's counters with themselves.
func balanced(ctx context.Context, d driver.Driver) error {
	t, err := d.Stats(ctx, Topic)
	if err != nil {
		return err
	}
	if left := t.Fanned + uint64(t.Delayed) + uint64(t.Held) + t.Expired + t.Cancelled; t.Published != left || t.Messages != 0 {
		return fmt.Errorf("published %d, accounted for %d, %d messages left", t.Published, left, t.Messages)
	}
	for _, g := range t.Groups {
		left := g.Acked + g.Dropped + g.Expired + g.Cancelled + uint64(g.Ready+g.Inflight+g.Waiting+g.Dead)
		if g.Received != left || g.Ready+g.Inflight+g.Waiting != 0 {
			return fmt.Errorf("group %s received %d, accounted for %d, %d not settled", g.Group, g.Received, left, g.Ready+g.Inflight+g.Waiting)
		}
	}
	return nil
}
