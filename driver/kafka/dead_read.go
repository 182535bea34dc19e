package kafka

import (
	"context"
	"slices"
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

// findDead looks for the dead letter of a message in a group: by its id at once, by its Ref in all of them.
func (d *Driver) findDead(ctx context.Context, t *topicState, group string, target driver.Target) (out []driver.Entry, err error) {
	x, err := d.deadLetters(ctx, t)
	if err != nil || x.count(group) == 0 {
		return nil, err
	}
	if target.ID == "" {
		err = d.eachDead(ctx, t, group, func(r *kgo.Record) {
			if e, ok := deadEntry(t.name, r); ok && x.current(r) && named(target, e.Ref, e.ID) {
				out = append(out, e)
			}
		})
		return out, err
	}
	at, ok := x.find(deadName(group, target.ID))
	if !ok {
		return nil, x.whole()
	}
	out, err = x.read(ctx, []row{at}, readDead(t))
	return slices.DeleteFunc(out, func(e driver.Entry) bool { return !named(target, e.Ref, e.ID) }), err
}

// eachDead reads the dead letters of a group one after the other, those included that were replaced.
func (d *Driver) eachDead(ctx context.Context, t *topicState, group string, use func(*kgo.Record)) error {
	return d.readAll(ctx, d.deadTopic(t.name), func(r *kgo.Record) {
		if r.Value != nil && strings.HasPrefix(string(r.Key), deadName(group, "")) {
			use(r)
		}
	})
}

// changeDead stores what change makes of a dead letter, for one of those who want to end it at the same time, and deletes it.
func (d *Driver) changeDead(ctx context.Context, t *topicState, e driver.Entry, change making) error {
	x, err := d.deadLetters(ctx, t)
	if err != nil {
		return err
	}
	name := deadName(e.Group, e.ID)
	at, ok := x.find(name)
	if !ok {
		return errNoMessage(driver.Target{Topic: t.name, ID: e.ID, Ref: e.Ref})
	}
	if at.suffix != suffixOf(deadKey(e.Group, e.ID, e.Dead.Rounds), name) {
		return driver.Target{Topic: t.name, ID: e.ID, Group: e.Group}.Outlived()
	}
	return x.contend(ctx, int32(at.partition), name, at.offset, func(ctx context.Context) (made, ends []*kgo.Record, err error) {
		made, err = change(ctx)
		for round := e.Dead.Rounds; round >= 0; round-- { // the older ones are what a crash may have left
			ends = append(ends, tombstone(x.topic, int32(at.partition), deadKey(e.Group, e.ID, round)))
		}
		return made, ends, err
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
