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
	ends, err := d.position(ctx, t, driver.Position{})
	if err != nil {
		return report, err
	}
	meta, err := d.compare(ctx, t, group, to, ends, &report)
	if err != nil || o.DryRun {
		return report, err
	}
	if _, err := d.removeItems(ctx, t, group, func(it *item) bool {
		return it.state == ready && it.side != "" && it.offset >= 0 && it.offset < to[it.p.id]
	}); err != nil {
		return report, err
	}
	return report, d.whileAway(ctx, t, group, func() error { return d.commitIdle(ctx, t, group, to, meta) })
}

// compare counts what a reset changes, and returns the metadata of the new offsets.
func (d *Driver) compare(ctx context.Context, t *topicState, group string, to, ends map[int32]int64, report *driver.ResetReport) (map[int32]string, error) {
	v, err := d.look(ctx, t, group)
	if err != nil {
		return nil, err
	}
	defer v.close()
	meta := map[int32]string{}
	v.mu.Lock()
	for id, p := range v.parts {
		for off := int64(0); off < ends[id]; off++ {
			switch done := p.done.has(off) && p.items[mainKey(off)] == nil; {
			case off >= to[id] && done:
				report.Replayed++
			case off < to[id] && !done && p.items[mainKey(off)] != nil && p.items[mainKey(off)].state == ready:
				report.Skipped++
			}
		}
		meta[id] = fmt.Sprintf("%c%d;", replayPart, ends[id])
	}
	v.mu.Unlock()
	return meta, nil
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
