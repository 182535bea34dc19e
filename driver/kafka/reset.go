package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/ferrymq/ferry/driver"
)

// Reset makes a group start again from a position, by committing other offsets.
func (d *Driver) Reset(ctx context.Context, topic, group string, o driver.ResetOptions) (driver.ResetReport, error) {
	var report driver.ResetReport
	t, err := d.existing(ctx, topic)
	if err != nil {
		return report, err
	}
	var row groupRow
	if !d.metaRow(groupKey(topic, group), &row) {
		return report, errNoGroup(topic, group)
	}
	busy, err := d.consumers(ctx, topic, group)
	switch {
	case err != nil:
		return report, err
	case busy && !o.DryRun && !o.Force:
		return report, d.refuseConsumers(ctx, topic, group)
	}
	to, err := d.position(ctx, t, o.To)
	if err != nil {
		return report, err
	}
	ends, err := d.position(ctx, t, endPosition)
	if err != nil {
		return report, err
	}
	meta, err := d.compare(ctx, t, group, to, ends, &report)
	if err != nil || o.DryRun {
		return report, err
	}
	return report, d.whileAway(ctx, t, group, func() error {
		if err := d.commitIdle(ctx, t, group, to, meta); err != nil { // first: it is refused while others consume
			return err
		}
		return d.skipSide(ctx, t, group, to)
	})
}

// compare counts what a reset changes, and returns the metadata of the new offsets.
func (d *Driver) compare(ctx context.Context, t *topicState, group string, to, ends map[int32]int64, report *driver.ResetReport) (map[int32]string, error) {
	starts, err := d.position(ctx, t, beginPosition)
	if err != nil {
		return nil, err
	}
	vs, err := d.look(ctx, t, group)
	if err != nil {
		return nil, err
	}
	defer vs.close()
	meta := map[int32]string{}
	for _, v := range vs.all {
		v.compare(to, starts, ends, report, meta)
	}
	return meta, nil
}

// skipSide ends what is ready in the side logs and lies before the new position, while nobody consumes.
func (d *Driver) skipSide(ctx context.Context, t *topicState, group string, to map[int32]int64) error {
	var row groupRow
	d.metaRow(groupKey(t.name, group), &row)
	v, err := d.visit(ctx, t, group, row, span(t.partitions), false)
	if err != nil {
		return err
	}
	defer v.cancel()
	_, err = v.cancelItems(ctx, nil, func(it *item) bool {
		return it.state == ready && it.side != "" && it.offset >= 0 && it.offset < to[it.p.id]
	})
	return err
}

func (v *view) compare(to, starts, ends map[int32]int64, report *driver.ResetReport, meta map[int32]string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for id, p := range v.parts {
		from := max(to[id], starts[id])
		report.Replayed += int(max(0, p.done.base-from))
		for off := max(from, p.done.base); off < min(ends[id], p.done.next); off++ {
			if p.done.has(off) {
				report.Replayed++
			}
		}
		report.Skipped += int(max(0, min(to[id], ends[id])-p.done.next)) // not fetched yet
		for it := range p.items.all() {
			switch {
			case it.offset < 0:
			case it.offset >= from && p.done.has(it.offset):
				report.Replayed-- // it is in the side log, unfinished
			case it.offset < to[id] && it.state == ready:
				report.Skipped++
			}
		}
		meta[id] = fmt.Sprintf("%c%d;%s", replayPart, ends[id], cleanText)
	}
}

// whileAway does something to a group while this process is no member of it. Its subscriptions stay.
func (d *Driver) whileAway(ctx context.Context, t *topicState, group string, do func() error) error {
	release, err := d.single(ctx, "member/"+t.name+"/"+group)
	if err != nil {
		return err
	}
	defer release()
	d.mu.Lock()
	m := d.members[d.groupID(t.name, group)]
	d.mu.Unlock()
	if m == nil {
		return do()
	}
	m.suspend()
	err = do()
	return errors.Join(err, m.join())
}
