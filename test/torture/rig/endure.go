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
	open, err := Lookup(o.Broker)
	if err != nil {
		return err
	}
	s, err := open(ctx, o)
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
	looking.Go(func() { watched = watch(watching, s.driver()) })
	err = play(ctx, o, s, log)
	end()
	looking.Wait()
	if err == nil {
		err = balanced(ctx, s.driver())
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
