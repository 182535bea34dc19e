package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/disk"
)

// Endure runs load and faults without histories, for as long as Load says, while watch looks on. In the end everything
// must be settled, and the broker's counters must balance.
func Endure(ctx context.Context, o Options, watch func(context.Context, driver.Driver) error) error {
	b, err := lookup(o.Broker)
	if err != nil {
		return err
	}
	o = o.withDefaults(b.pace)
	o.Dir = ""
	if b.owned { // nobody could look into it while its process runs: its processes live in this one
		b = brokers()["memory"]
		b.open = openDiskHere
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

// openDiskHere opens a store in this process.
func openDiskHere(ctx context.Context, o Options) (stage, error) {
	dir, err := os.MkdirTemp("", "ferry-soak-store-")
	if err != nil {
		return nil, err
	}
	d, err := disk.New(ctx, disk.Options{Dir: dir})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &ownedStage{newLocalStage(d, o), dir}, nil
}

// ownedStage is a local one around a store.
type ownedStage struct {
	*localStage
	dir string
}

func (s *ownedStage) close(ctx context.Context) error {
	return errors.Join(s.localStage.close(ctx), os.RemoveAll(s.dir))
}

// balanced compares the broker's counters with themselves.
func balanced(ctx context.Context, d driver.Driver) error {
	t, err := d.Stats(ctx, Topic)
	if err != nil {
		return err
	}
	if left := t.Fanned + uint64(t.Delayed) + uint64(t.Held) + t.Expired + t.Cancelled; t.Published != left ||
		t.Messages != 0 {
		return fmt.Errorf("published %d, accounted for %d, %d messages left", t.Published, left, t.Messages)
	}
	for _, g := range t.Groups {
		left := g.Acked + g.Dropped + g.Expired + g.Cancelled + uint64(g.Ready+g.Inflight+g.Waiting+g.Dead)
		if g.Received != left || g.Ready+g.Inflight+g.Waiting != 0 {
			return fmt.Errorf("group %s received %d, accounted for %d, %d not settled", g.Group, g.Received, left,
				g.Ready+g.Inflight+g.Waiting)
		}
	}
	return nil
}
