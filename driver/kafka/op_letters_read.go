package kafka

import (
	"context"
	"strings"

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
	if err != nil || x.Count(group) == 0 {
		return out, err
	}
	var rows []compacted.Row
	byRef := map[driver.Ref]driver.Entry{}
	byID := map[string]driver.Entry{}
	for _, target := range targets {
		if target.ID == "" {
			byRef[target.Ref] = driver.Entry{}
		} else if at, ok := x.Find(record.DeadName(group, target.ID)); ok {
			rows = append(rows, at)
		} else if err := x.Whole(); err != nil {
			return nil, err
		}
	}
	if len(byRef) > 0 {
		if err := d.eachDead(ctx, t, group, func(r *kgo.Record) {
			if e, ok := record.DeadEntry(t.Name, r); ok && x.Current(r) {
				if _, wanted := byRef[e.Ref]; wanted {
					byRef[e.Ref] = e
				}
			}
		}); err != nil {
			return nil, err
		}
	}
	es, err := x.Read(ctx, rows, registry.ReadDead(t))
	if err != nil {
		return nil, err
	}
	for _, e := range es {
		byID[e.ID] = e
	}
	for i, target := range targets {
		e := byID[target.ID]
		if target.ID == "" {
			e = byRef[target.Ref]
		}
		if e.Dead != nil && record.Named(target, e.Ref, e.ID) {
			out[i] = e
		}
	}
	return out, nil
}

// eachDead reads the dead letters of a group one after the other, those included that were replaced.
func (d *letterBox) eachDead(ctx context.Context, t *registry.TopicState, group string, use func(*kgo.Record)) error {
	return d.cluster.ReadAll(ctx, d.cluster.DeadTopic(t.Name), func(r *kgo.Record) {
		if r.Value != nil && strings.HasPrefix(string(r.Key), record.DeadName(group, "")) {
			use(r)
		}
	})
}

// endAllDead deletes the dead letters of a group.
func (d *letterBox) endAllDead(ctx context.Context, t *registry.TopicState, group string) error {
	x, err := d.registry.DeadLetters(ctx, t)
	if err != nil || x.Count(group) == 0 {
		return err
	}
	return x.EndEach(ctx, func(use func(*kgo.Record)) error { return d.eachDead(ctx, t, group, use) })
}

// changeInvalid stores what change makes of a broken record, for one of those who want to end it at the same time, and
// deletes it.
func (d *Driver) changeInvalid(ctx context.Context, t *registry.TopicState, ref driver.Ref,
	change compacted.Replacement) error {
	x, err := d.registry.InvalidRows(ctx, t)
	if err != nil {
		return err
	}
	at, ok := x.Find(ref.String())
	if !ok {
		return cluster.ErrNoMessage(driver.Target{Topic: t.Name, Ref: ref})
	}
	return x.Contend(ctx, int32(at.Partition), ref.String(), at.Offset,
		func(ctx context.Context) (made, ends []*kgo.Record, err error) {
			made, err = change(ctx)
			return made, []*kgo.Record{record.Tombstone(x.Topic, int32(at.Partition), ref.String())}, err
		})
}
