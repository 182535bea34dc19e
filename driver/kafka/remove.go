package kafka

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
)

func errBusy(id string, state driver.State) error {
	return driver.NewError(driver.ErrConflict, fmt.Sprintf("message %q is %s", id, state), "wait until it is settled", nil)
}

// Purge removes what is ready, waiting or delayed as of its start.
func (d *Driver) Purge(ctx context.Context, topic, group string) (int, error) {
	if err := driver.CheckScope(topic, group); err != nil {
		return 0, err
	}
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
		if n, err = d.purgeDelayed(ctx, topic); err != nil {
			return 0, err
		}
	}
	ends, err := d.position(ctx, t, endPosition)
	if err != nil {
		return n, err
	}
	for _, g := range groups {
		removed, err := d.change(ctx, t, g, command{Op: "purge"}, ends)
		n += removed
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// purgeDelayed ends what is delayed for a topic now, and says how much it was.
func (d *Driver) purgeDelayed(ctx context.Context, topic string) (int, error) {
	w, err := d.existingDelays(ctx)
	if w == nil || err != nil {
		return 0, err
	}
	n, err := w.count(ctx, topic, -1)
	if n > 0 && err == nil {
		err = w.voidAll(ctx, topic)
	}
	return int(n), err
}

// endAllDelayed ends all that is delayed or held for a topic.
func (d *Driver) endAllDelayed(ctx context.Context, topic string) error {
	w, err := d.existingDelays(ctx)
	if w == nil || err != nil {
		return err
	}
	if err := w.voidAll(ctx, topic); err != nil {
		return err
	}
	if w.held.count(heldList(topic)) == 0 {
		return nil
	}
	return d.endEach(ctx, w.held.table, func(use func(*kgo.Record)) error {
		return d.readAll(ctx, d.heldTopic(), func(r *kgo.Record) {
			if r.Value != nil && strings.HasPrefix(string(r.Key), heldKey(topic, "")) {
				use(r)
			}
		})
	})
}

// cancelItems ends items that nobody holds, of one partition or of all: first in the side log, then their offsets are done.
func (m *member) cancelItems(ctx context.Context, only *partition, match func(*item) bool) (int, error) {
	m.mu.Lock()
	var picked []*item
	var ends []*kgo.Record
	seen := map[*item]bool{}
	for _, p := range m.parts {
		if only != nil && p != only {
			continue
		}
		for it := range p.items.all() {
			if seen[it] || it.state != ready && it.state != waiting || !match(it) {
				continue
			}
			seen[it] = true
			picked = append(picked, it)
			m.enter(it, inflight) // nobody takes it while its end is stored
			m.withhold(it)
			if it.side != "" {
				ends = append(ends, m.endOf(it))
			}
		}
	}
	m.mu.Unlock()
	err := m.d.produce(ctx, ends...)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, it := range picked {
		if err != nil {
			m.offer(it)
			continue
		}
		it.p.tally.Cancelled++
		m.remove(it)
	}
	if err != nil {
		return 0, err
	}
	return len(picked), nil
}

// purge ends what a partition has before an offset of the main topic, fetched or not.
func (m *member) purge(ctx context.Context, p *partition, before int64) (int, error) {
	n, err := m.cancelItems(ctx, p, func(it *item) bool { return it.offset < before })
	if err != nil {
		return n, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for off := p.done.next; off < before; off++ { // what is not fetched yet is passed over when it is
		if !p.done.has(off) {
			p.done.set(off)
			p.tally.Cancelled++
			n++
		}
	}
	p.dirty = true
	return n, nil
}

// Delete removes single messages, one error each.
func (d *Driver) Delete(ctx context.Context, ts []driver.Target) []error {
	errs := make([]error, len(ts))
	var all []request
	for i, target := range ts {
		if errs[i] = target.Check(); errs[i] == nil {
			all = append(all, request{target, nil, &errs[i]})
		}
	}
	for _, q := range d.changeLetters(ctx, all) {
		*q.err = d.deleteOne(ctx, q.Target)
	}
	return errs
}

func (d *Driver) deleteOne(ctx context.Context, target driver.Target) error {
	t, err := d.existing(ctx, target.Topic)
	if err != nil {
		return err
	}
	if x, err := d.findDelayed(ctx, target); x != nil || err != nil {
		if err != nil {
			return err
		}
		return d.changeDelayed(ctx, x, everyStamp, unchanged)
	}
	es, err := d.getSettled(ctx, t, target)
	if err != nil {
		return err
	}
	if target.Death > 0 && !meant(target, es) {
		return target.Outlived()
	}
	for _, e := range es {
		if e.State == driver.StateInflight {
			return errBusy(e.ID, e.State)
		}
	}
	var failed error
	for _, e := range es {
		failed = errors.Join(failed, d.deleteEntry(ctx, t, e))
	}
	return failed
}

func (d *Driver) deleteEntry(ctx context.Context, t *topicState, e driver.Entry) error {
	switch e.State {
	case driver.StateInvalid:
		return d.changeInvalid(ctx, t, e.Ref, unchanged)
	case driver.StateDead:
		return d.changeDead(ctx, t, e, nil)
	}
	n, err := d.change(ctx, t, e.Group, command{Op: "delete", Ref: e.Ref, ID: e.ID}, nil)
	if err == nil && n == 0 {
		err = errNoMessage(driver.Target{Topic: t.name, ID: e.ID, Ref: e.Ref})
	}
	return err
}
