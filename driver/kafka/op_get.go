package kafka

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/compacted"
	"github.com/ferrymq/ferry/driver/kafka/internal/consumer"
	"github.com/ferrymq/ferry/driver/kafka/internal/record"
	"github.com/ferrymq/ferry/driver/kafka/internal/registry"
)

// Get returns a message as every group sees it.
func (d *Driver) Get(ctx context.Context, target driver.Target) ([]driver.Entry, error) {
	t, err := d.topic(ctx, target.Check(), target.Topic)
	if err != nil {
		return nil, err
	}
	if target.Death > 0 && target.Group != "" { // what else there is of the message does not matter
		if found, err := d.letters.findDead(ctx, t, target.Group, target); len(found) > 0 || err != nil {
			return found, err
		}
	}
	ofAll := driver.Target{Topic: target.Topic, Ref: target.Ref, ID: target.ID}
	if x, err := d.delays.Find(ctx, ofAll); err != nil {
		return nil, err
	} else if x != nil {
		return []driver.Entry{x.Entry()}, nil
	}
	return d.getDue(ctx, t, target)
}

// getDue returns a message that has been due, as every group sees it.
func (d *Driver) getDue(ctx context.Context, t *registry.TopicState, target driver.Target) ([]driver.Entry, error) {
	groups, err := d.scope(t, target.Group)
	if err != nil {
		return nil, err
	}
	var out []driver.Entry
	for _, g := range groups {
		es, err := d.getIn(ctx, t, g, target)
		if err != nil {
			return nil, err
		}
		out = append(out, es...)
	}
	if len(out) == 0 && target.Group == "" && !target.Ref.IsZero() {
		if out, err = d.getInvalid(ctx, t, target.Ref); err != nil {
			return nil, err
		}
	}
	if len(out) == 0 && d.registry.RowOf(t).Config.Keep > 0 {
		if out, err = d.getKept(ctx, t, target); err != nil {
			return nil, err
		}
	}
	if len(out) == 0 {
		return nil, cluster.ErrNoMessage(target)
	}
	return out, nil
}

func (d *Driver) getInvalid(ctx context.Context, t *registry.TopicState, ref driver.Ref) ([]driver.Entry, error) {
	x, err := d.registry.InvalidRows(ctx, t)
	if err != nil {
		return nil, err
	}
	at, ok := x.Find(ref.String())
	if !ok {
		return nil, nil
	}
	return x.Read(ctx, []compacted.Row{at}, record.InvalidEntry)
}

// getKept looks for a settled message among what TopicConfig.Keep holds: at its offset, or in all that is young enough.
func (d *Driver) getKept(ctx context.Context, t *registry.TopicState, target driver.Target) (out []driver.Entry,
	err error) {
	from, err := d.registry.Position(ctx, t, registry.BeginPosition)
	if err != nil {
		return nil, err
	}
	for id, at := range from {
		err := d.cluster.ReadRange(ctx, t.Main, id, at, at+cluster.WindowItems, func(r *kgo.Record) {
			m, err := record.FromRecord(t.Name, r)
			if err != nil || record.IsLate(r) || !record.Named(target, record.RefOf(r), m.ID) || m.TTL > 0 &&
				time.Since(m.PublishedAt) > m.TTL {
				return
			}
			for _, g := range d.registry.GroupsOf(t.Name) {
				if target.Group == "" || target.Group == g {
					out = append(out, driver.Entry{Message: m, Ref: record.RefOf(r), Group: g, State: driver.StateDone, Attempt: 1,
						Deliveries: 1})
				}
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (d *Driver) getIn(ctx context.Context, t *registry.TopicState, group string, target driver.Target) ([]driver.Entry,
	error) {
	vs, err := d.groups.Look(ctx, t, group)
	if err != nil {
		return nil, err
	}
	defer vs.Close()
	out, err := d.groups.Whole(ctx,
		vs.Entries(func(it *consumer.Item) bool { return record.Named(target, it.Ref, it.Msg.ID) }))
	if err != nil {
		return nil, err
	}
	if len(out) == 0 && vs.Unread(target.Ref) {
		return d.getUnread(ctx, t, group, target.Ref)
	}
	dead, err := d.letters.findDead(ctx, t, group, target)
	if out = append(out, dead...); err == nil && len(out) == 0 {
		err = vs.Sure()
	}
	return out, err
}

// getUnread reads a message that no owner has fetched yet: it is ready.
func (d *Driver) getUnread(ctx context.Context, t *registry.TopicState, group string, ref driver.Ref) ([]driver.Entry,
	error) {
	r, err := d.cluster.ReadOne(ctx, t.Main, ref.Partition, int64(ref.Pos)-1)
	if r == nil || err != nil {
		return nil, err
	}
	m, err := record.FromRecord(t.Name, r)
	if err != nil || record.IsLate(r) {
		return nil, nil // it will be among the invalid, or is void
	}
	return []driver.Entry{{Message: m, Ref: ref, Group: group, State: driver.StateReady, Attempt: 1, Deliveries: 1}}, nil
}
