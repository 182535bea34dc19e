package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
)

func errBusy(id string, state driver.State) error {
	return driver.NewError(driver.ErrConflict, fmt.Sprintf("message %q is %s", id, state), "wait until it is settled", nil)
}

// Purge removes what is ready, waiting or delayed as of its start.
func (d *Driver) Purge(ctx context.Context, topic, group string) (int, error) {
	t, err := d.existing(ctx, topic)
	if err != nil {
		return 0, err
	}
	groups, n := d.groupsOf(topic), 0
	if group != "" {
		var row groupRow
		if !d.metaRow(groupKey(topic, group), &row) {
			return 0, errNoGroup(topic, group)
		}
		groups = []string{group}
	} else {
		rows, err := d.delayedOf(ctx, topic)
		if err != nil {
			return 0, err
		}
		for _, x := range rows {
			if x.s.Hold {
				continue
			}
			if err := d.endDelayed(ctx, x); err != nil {
				return n, err
			}
			n++
		}
	}
	for _, g := range groups {
		removed, err := d.removeItems(ctx, t, g, func(it *item) bool { return it.state == ready || it.state == waiting })
		n += removed
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

func (d *Driver) endDelayed(ctx context.Context, x delayed) error {
	d.mu.Lock()
	w := d.delays
	d.mu.Unlock()
	if w == nil {
		return errClosed()
	}
	return w.rows.put(ctx, tombstone(x.r.Topic, x.r.Partition, string(x.r.Key)))
}

// removeItems ends items of a group that nobody holds: first in the side log, then their offsets are done.
func (d *Driver) removeItems(ctx context.Context, t *topicState, group string, match func(*item) bool) (int, error) {
	v, err := d.look(ctx, t, group)
	if err != nil {
		return 0, err
	}
	defer v.close()
	v.mu.Lock()
	var picked []*item
	var ends []*kgo.Record
	seen := map[*item]bool{}
	for _, p := range v.parts {
		for _, it := range p.items {
			if seen[it] || it.state != ready && it.state != waiting || !match(it) {
				continue
			}
			seen[it] = true
			picked = append(picked, it)
			v.enter(it, inflight) // nobody takes it while its end is stored
			v.withdraw(it)
			if it.side != "" {
				ends = append(ends, tombstone(v.sideName, p.id, it.side))
			}
		}
	}
	v.mu.Unlock()
	err = d.produce(ctx, ends...)
	v.mu.Lock()
	for _, it := range picked {
		if err != nil {
			v.offer(it)
			continue
		}
		v.cancelled++
		v.remove(it)
	}
	v.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return len(picked), v.finish(ctx)
}

// Delete removes single messages, one error each.
func (d *Driver) Delete(ctx context.Context, ts []driver.Target) []error {
	errs := make([]error, len(ts))
	for i, target := range ts {
		errs[i] = d.deleteOne(ctx, target)
	}
	return errs
}

func (d *Driver) deleteOne(ctx context.Context, target driver.Target) error {
	es, err := d.Get(ctx, target)
	if err != nil {
		return err
	}
	t, err := d.existing(ctx, target.Topic)
	if err != nil {
		return err
	}
	for _, e := range es {
		if e.State == driver.StateInflight {
			return errBusy(e.ID, e.State)
		}
	}
	var failed error
	for _, e := range es {
		failed = errors.Join(failed, d.deleteEntry(ctx, t, target, e))
	}
	return failed
}

func (d *Driver) deleteEntry(ctx context.Context, t *topicState, target driver.Target, e driver.Entry) error {
	switch e.State {
	case driver.StateDelayed, driver.StateHeld:
		rows, err := d.delayedOf(ctx, t.name)
		if err != nil {
			return err
		}
		for _, x := range rows {
			if x.m.ID == e.ID {
				return d.endDelayed(ctx, x)
			}
		}
		return errNoMessage(target)
	case driver.StateInvalid:
		bad, err := d.invalidTable(ctx, t)
		if err != nil {
			return err
		}
		return bad.put(ctx, tombstone(d.invalidTopic(t.name), 0, e.Ref.String()))
	case driver.StateDead:
		return d.endDead(ctx, t, e.Group, e.ID)
	}
	n, err := d.removeItems(ctx, t, e.Group, func(it *item) bool { return it.ref == e.Ref && it.msg.ID == e.ID })
	if err == nil && n == 0 {
		return errBusy(e.ID, driver.StateInflight)
	}
	return err
}
