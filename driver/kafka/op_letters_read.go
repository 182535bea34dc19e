package kafka

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/compacted"
	"github.com/ferrymq/ferry/driver/kafka/internal/record"
	"github.com/ferrymq/ferry/driver/kafka/internal/registry"
)

// findDead looks for the dead letter of a message in a group.
func (d *letterBox) findDead(ctx context.Context, t *registry.TopicState, group string,
	target driver.Target) ([]driver.Entry, error) {
	found, err := d.findLetters(ctx, t, group, []driver.Target{target})
	if err != nil || found[0].Dead == nil {
		return nil, err
	}
	return found, nil
}

// findLetters looks for the dead letters of messages in a group: by their ids at once, by their Refs alone in all of
// them. An entry without Dead says that there is none.
func (d *letterBox) findLetters(ctx context.Context, t *registry.TopicState, group string,
	targets []driver.Target) ([]driver.Entry, error) {
	out := make([]driver.Entry, len(targets))
	x, err := d.registry.DeadLetters(ctx, t)
	if err == nil {
		err = x.SyncAnswered(ctx)
	}
	if err != nil || x.Count(group) == 0 {
		return out, err
	}
	var rows []compacted.Row
	byRef := map[driver.Ref]bool{}
	for _, target := range targets {
		if target.ID == "" {
			byRef[target.Ref] = true
		} else if at, ok := x.Find(record.DeadName(group, target.ID)); ok {
			rows = append(rows, at)
		} else if err := x.Whole(); err != nil {
			return nil, err
		}
	}
	es, err := x.Read(ctx, rows, registry.ReadDead(t))
	if err == nil && len(byRef) > 0 {
		err = d.registry.EachDead(ctx, t, group, func(e driver.Entry) {
			if byRef[e.Ref] {
				es = append(es, e)
			}
		})
	}
	if err != nil {
		return nil, err
	}
	for i, target := range targets {
		at := slices.IndexFunc(es, func(e driver.Entry) bool {
			return record.Named(target, e.Ref, e.ID) && (target.ID == "" || target.ID == e.ID)
		})
		if at >= 0 {
			out[i] = es[at]
		}
	}
	return out, nil
}

// endAllDead deletes the dead letters of a group.
func (d *letterBox) endAllDead(ctx context.Context, t *registry.TopicState, group string) error {
	x, err := d.registry.DeadLetters(ctx, t)
	if err != nil || x.Count(group) == 0 {
		return err
	}
	return x.EndEach(ctx, record.DeadName(group, ""))
}

// endInvalid stores what is made of a broken record, for one of those who want to end it at the same time, and deletes
// it.
func (d *Driver) endInvalid(ctx context.Context, t *registry.TopicState, ref driver.Ref, made ...*kgo.Record) error {
	x, err := d.registry.InvalidRows(ctx, t)
	if err != nil {
		return err
	}
	at, ok := x.Find(ref.String())
	if !ok {
		return cluster.ErrNoMessage(driver.Target{Topic: t.Name, Ref: ref})
	}
	end := record.Tombstone(x.Topic, int32(at.Partition), ref.String())
	return x.Contend(ctx, compacted.Contender{Partition: end.Partition, Key: ref.String(), Row: at.Offset, Made: made,
		Ends: []*kgo.Record{end}})
}
