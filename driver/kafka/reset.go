package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ferrymq/ferry/driver"
)

// Reset makes a group start again from a position, by committing other offsets.
func (d *Driver) Reset(ctx context.Context, topic, group string, o driver.ResetOptions) (driver.ResetReport, error) {
	var report driver.ResetReport
	if err := o.Check(topic, group); err != nil {
		return report, err
	}
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
	err = d.whileAway(ctx, t, group, func() error {
		if err := d.setPosition(ctx, t, group, to, meta, o.Force); err != nil {
			return err
		}
		return d.skipSide(ctx, t, group, to)
	})
	if err == nil && busy && report.Skipped > 0 { // who was back sooner has read what is skipped
		err = d.skipAgain(ctx, t, group, to)
	}
	return report, err
}

// skipAgain ends what is skipped with those who consume again. Partitions may change their owners meanwhile, since consumers join one after the other.
func (d *Driver) skipAgain(ctx context.Context, t *topicState, group string, to map[int32]int64) error {
	for tries := 1; ; tries++ {
		_, err := d.change(ctx, t, group, command{Op: skip}, to)
		if !errors.Is(err, driver.ErrNotApplied) || tries > resetTries {
			return err
		}
		if err := pause(ctx, 5*fetchWait); err != nil {
			return err
		}
	}
}

// skip is the command to end what is ready in a side log and lies before an offset of the main topic.
const skip = "skip"

func (m *member) skip(ctx context.Context, p *partition, before int64) (int, error) {
	return m.cancelItems(ctx, p, func(it *item) bool { return it.state == ready && it.side != "" && it.offset >= 0 && it.offset < before })
}

// skipSide does that in all partitions while nobody consumes.
func (d *Driver) skipSide(ctx context.Context, t *topicState, group string, to map[int32]int64) error {
	var row groupRow
	d.metaRow(groupKey(t.name, group), &row)
	ids, err := d.partitionsNow(ctx, t)
	if err != nil {
		return err
	}
	v, err := d.visit(ctx, t, group, row, ids, false)
	if err != nil {
		return err
	}
	defer v.cancel()
	for id, p := range v.parts { // nobody else knows it
		if _, err := v.skip(ctx, p, to[id]); err != nil {
			return err
		}
	}
	return nil
}

// setPosition commits other offsets while nobody consumes. By force consumers are made to leave; they learn of it a moment later, and join again.
func (d *Driver) setPosition(ctx context.Context, t *topicState, group string, to map[int32]int64, meta map[int32]string, force bool) error {
	for tries := 1; ; tries++ {
		err := d.commitIdle(ctx, t, group, to, meta) // it is refused while others consume
		if err == nil || !force || tries > resetTries {
			return err
		}
		if err := d.expel(ctx, d.groupID(t.name, group)); err != nil {
			return err
		}
	}
}

// resetTries bounds how often consumers are made to leave that are back before the offsets are set.
const resetTries = 10

// expel removes all members from a group.
func (d *Driver) expel(ctx context.Context, group string) error {
	found, err := d.admin.DescribeGroups(ctx, group)
	if err == nil {
		err = found[group].Err
	}
	if err != nil {
		return d.unreached("reading the members of "+group, err)
	}
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group = group
	for _, m := range found[group].Members {
		x := kmsg.NewLeaveGroupRequestMember()
		x.MemberID, x.Reason = m.MemberID, text("the group is reset")
		req.Members = append(req.Members, x)
	}
	_, err = req.RequestWith(ctx, d.client)
	return d.unreached("making the members of "+group+" leave", err) // who has gone already is no error
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
