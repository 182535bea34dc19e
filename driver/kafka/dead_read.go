package kafka

import (
	"context"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
)

// deadName names a message among the dead letters of a topic. The key of a dead letter has its round too: the end of a letter that was replayed must not be that
// of the one that came of it.
func deadName(group, id string) string { return group + "/" + id }

func deadKey(group, id string, rounds int) string {
	if rounds == 0 {
		return deadName(group, id)
	}
	return deadName(group, id) + roundMark + strconv.Itoa(rounds)
}

// roundMark is in no id.
const roundMark = "\x00"

func deadList(key string) (group, name string) {
	name, _, _ = strings.Cut(key, roundMark)
	group, _, _ = strings.Cut(name, "/")
	return group, name
}

// deadLetters follows the dead letters of a topic from the first look on.
func (d *Driver) deadLetters(ctx context.Context, t *topicState) (*index, error) {
	return d.indexOf(ctx, &t.dead, d.deadTopic(t.name), deadList)
}

func readDead(t *topicState) func(*kgo.Record) (driver.Entry, bool) {
	return func(r *kgo.Record) (driver.Entry, bool) { return deadEntry(t.name, r) }
}

// findDead looks for the dead letter of a message in a group.
func (d *Driver) findDead(ctx context.Context, t *topicState, group string, target driver.Target) ([]driver.Entry, error) {
	found, err := d.findLetters(ctx, t, group, []driver.Target{target})
	if err != nil || found[0].Dead == nil {
		return nil, err
	}
	return found, nil
}

// findLetters looks for the dead letters of messages in a group: by their ids at once, by their Refs alone in all of them. An entry without Dead says that there is none.
func (d *Driver) findLetters(ctx context.Context, t *topicState, group string, targets []driver.Target) ([]driver.Entry, error) {
	out := make([]driver.Entry, len(targets))
	x, err := d.deadLetters(ctx, t)
	if err != nil || x.count(group) == 0 {
		return out, err
	}
	var rows []row
	byRef := map[driver.Ref]driver.Entry{}
	byID := map[string]driver.Entry{}
	for _, target := range targets {
		if target.ID == "" {
			byRef[target.Ref] = driver.Entry{}
		} else if at, ok := x.find(deadName(group, target.ID)); ok {
			rows = append(rows, at)
		} else if err := x.whole(); err != nil {
			return nil, err
		}
	}
	if len(byRef) > 0 {
		if err := d.eachDead(ctx, t, group, func(r *kgo.Record) {
			if e, ok := deadEntry(t.name, r); ok && x.current(r) {
				if _, wanted := byRef[e.Ref]; wanted {
					byRef[e.Ref] = e
				}
			}
		}); err != nil {
			return nil, err
		}
	}
	es, err := x.read(ctx, rows, readDead(t))
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
		if e.Dead != nil && named(target, e.Ref, e.ID) {
			out[i] = e
		}
	}
	return out, nil
}

// eachDead reads the dead letters of a group one after the other, those included that were replaced.
func (d *Driver) eachDead(ctx context.Context, t *topicState, group string, use func(*kgo.Record)) error {
	return d.readAll(ctx, d.deadTopic(t.name), func(r *kgo.Record) {
		if r.Value != nil && strings.HasPrefix(string(r.Key), deadName(group, "")) {
			use(r)
		}
	})
}

// endAllDead deletes the dead letters of a group.
func (d *Driver) endAllDead(ctx context.Context, t *topicState, group string) error {
	x, err := d.deadLetters(ctx, t)
	if err != nil || x.count(group) == 0 {
		return err
	}
	return d.endEach(ctx, x.table, func(use func(*kgo.Record)) error { return d.eachDead(ctx, t, group, use) })
}

// endEach deletes the rows that each calls use with.
func (d *Driver) endEach(ctx context.Context, t *table, each func(use func(*kgo.Record)) error) error {
	var ends []*kgo.Record
	var failed error
	if err := each(func(r *kgo.Record) {
		if ends = append(ends, tombstone(r.Topic, r.Partition, string(r.Key))); len(ends) == fireBatch && failed == nil {
			failed = d.produce(ctx, ends...)
			ends = nil
		}
	}); err != nil {
		return err
	}
	if failed == nil {
		failed = t.put(ctx, ends...)
	}
	return failed
}

// readAll calls use with all records of a topic.
func (d *Driver) readAll(ctx context.Context, topic string, use func(*kgo.Record)) error {
	n, err := d.partitionsOf(ctx, topic)
	if err != nil {
		return err
	}
	spans := map[int32][2]int64{}
	for _, id := range span(n) {
		spans[id] = [2]int64{0, 1 << 62}
	}
	return d.readSpans(ctx, topic, spans, use)
}
