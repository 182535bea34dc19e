package engine

import (
	"cmp"
	"context"
	"fmt"

	"github.com/ferrymq/ferry/driver"
)

// Purge removes what is ready, waiting or delayed now.
func (e *Engine) Purge(ctx context.Context, in, name string) (n int, err error) {
	if err := driver.CheckScope(in, name); err != nil {
		return 0, err
	}
	var only *group
	newest := uint64(0)
	err = e.changeWhole(ctx, in, wholeChange{
		check: func(t *topic, _ moment) (err error) {
			newest = cmp.Or(newest, t.seq)
			if name != "" {
				only, err = t.mustGroup(name)
			}
			return err
		},
		each: func(t *topic, es []*entry, now moment) {
			for _, en := range es {
				if en.seq <= newest {
					n += t.purge(en, only, now)
				}
			}
		},
	})
	return n, err
}

// purge removes one message as far as it is not in flight or dead, and returns from how many places.
func (t *topic) purge(e *entry, only *group, now moment) int {
	if e.state == delayed && only == nil {
		t.cancel(e, now)
		return 1
	}
	n := 0
	for it := range e.all() {
		if (only == nil || it.g == only) && (it.state == ready || it.state == waiting) {
			it.g.cancel(it, now)
			n++
		}
	}
	return n
}

// cancel removes a message that belongs to the topic.
func (t *topic) cancel(e *entry, now moment) {
	t.takeOut(e)
	t.stats.Cancelled++
	t.lose(e)
	t.remove(e, now)
}

// cancel removes a message for one group.
func (g *group) cancel(it *item, now moment) {
	if it.state != done {
		g.stats.Cancelled++
	}
	g.finish(it, gone, now)
}

// Delete removes single messages.
func (e *Engine) Delete(ctx context.Context, ts []driver.Target) []error {
	errs := make([]error, len(ts))
	for i, target := range ts {
		errs[i] = e.deleteOne(ctx, target)
	}
	return errs
}

func (e *Engine) deleteOne(ctx context.Context, target driver.Target) (err error) {
	if err := target.Check(); err != nil {
		return err
	}
	now := e.now()
	t, err := e.lockReaching(ctx, target, now)
	if err != nil {
		return err
	}
	defer func() { e.durable(ctx, t.unlock(now), &err) }()
	t.alter()
	en, err := t.find(target)
	if err != nil {
		return err
	}
	if target.Group != "" {
		it, err := t.findItem(en, target)
		if err != nil {
			return err
		}
		switch {
		case !it.meant(target):
			return target.Outlived()
		case it.state == inflight:
			return errInFlight(target)
		}
		it.g.cancel(it, now)
		return nil
	}
	if en.any(inflight) {
		return errInFlight(target)
	}
	t.erase(en, now)
	return nil
}

// erase removes a message from the topic and from all groups, even where it is kept.
func (t *topic) erase(e *entry, now moment) {
	switch e.state {
	case delayed, held:
		t.cancel(e, now)
	case invalid:
		t.invalid.remove(e.seq)
		t.stats.Invalid--
		t.remove(e, now)
	default:
		for e.items != nil {
			e.items.g.cancel(e.items, now) // the last one removes it
		}
	}
}

// find returns the message that a target names.
func (t *topic) find(target driver.Target) (*entry, error) {
	var e *entry
	if !target.Ref.IsZero() {
		if target.Ref.Partition == 0 && target.Ref.Sub == 0 {
			e = t.log.get(target.Ref.Pos)
		}
	} else if target.ID != "" {
		e, _ = t.ids.Get(target.ID)
	}
	if e == nil {
		return nil, t.errNoMessage(target)
	}
	return e, nil
}

// findItem returns the message as the group of the target sees it.
func (t *topic) findItem(e *entry, target driver.Target) (*item, error) {
	g, err := t.mustGroup(target.Group)
	if err != nil {
		return nil, err
	}
	if it := e.item(g); it != nil {
		return it, nil
	}
	hint := "it was settled there, or became ready before the group existed"
	if e.state != fanned {
		hint = "it belongs to the topic, not to a group: leave the group out"
	}
	return nil, driver.NewError(driver.ErrNotFound, fmt.Sprintf("group %q of topic %q has no message %s", g.name, t.name,
		describe(target)), hint, nil)
}

func (t *topic) errNoMessage(target driver.Target) error {
	return driver.NewError(driver.ErrNotFound, fmt.Sprintf("topic %q has no message %s", t.name, describe(target)),
		"it was settled or removed; 'ferry topic alter --keep' has a topic keep settled messages for a while", nil)
}

func describe(target driver.Target) string {
	if !target.Ref.IsZero() {
		return target.Ref.String()
	}
	return fmt.Sprintf("%q", target.ID)
}

func errInFlight(target driver.Target) error {
	return driver.NewError(driver.ErrConflict, fmt.Sprintf("message %s is in flight", describe(target)),
		"try again when its consumer has settled it", nil)
}
