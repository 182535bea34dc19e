package kafka

import (
	"context"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
)

// deadPage is a page of the dead letters of a group, in the order they died.
func (d *Driver) deadPage(ctx context.Context, t *topicState, q driver.Query) (driver.Page, error) {
	x, err := d.deadLetters(ctx, t)
	if err == nil {
		err = x.whole()
	}
	if err != nil {
		return driver.Page{}, err
	}
	var behind letter // before all
	if q.Cursor != "" {
		if behind, err = readCursor(q.Cursor); err != nil {
			return driver.Page{}, err
		}
	}
	n := min(q.Limit, q.MaxScan)
	found := x.page(q.Group, behind, n)
	var page driver.Page
	if len(found) > n {
		found = found[:n]
		page.Next = found[n-1].cursor()
	}
	page.Scanned = len(found)
	page.Entries, err = d.readLetters(ctx, t, found)
	return page, err
}

// readLetters reads dead letters, in the same order. Those that are replaced or deleted meanwhile are left out.
func (d *Driver) readLetters(ctx context.Context, t *topicState, ls []letter) ([]driver.Entry, error) {
	wanted := map[int32][]int64{}
	for _, l := range ls {
		wanted[int32(l.partition)] = append(wanted[int32(l.partition)], l.offset)
	}
	records := map[topicOffset]*kgo.Record{}
	if err := d.readAt(ctx, d.deadTopic(t.name), wanted, func(r *kgo.Record) { records[topicOffset{r.Partition, r.Offset}] = r }); err != nil {
		return nil, err
	}
	var out []driver.Entry
	for _, l := range ls {
		if r := records[topicOffset{int32(l.partition), l.offset}]; r != nil {
			if e, ok := deadEntry(t.name, r); ok {
				out = append(out, e)
			}
		}
	}
	return out, nil
}

// topicOffset is a place in a topic.
type topicOffset struct {
	partition int32
	offset    int64
}

// findDead looks for the dead letter of a message in a group: by its id at once, by its Ref in all of them.
func (d *Driver) findDead(ctx context.Context, t *topicState, group string, target driver.Target) (out []driver.Entry, err error) {
	x, err := d.deadLetters(ctx, t)
	if err != nil || x.count(group) == 0 {
		return nil, err
	}
	if target.ID == "" {
		err = d.eachDead(ctx, t, x, group, func(_ *kgo.Record, e driver.Entry) {
			if named(target, e.Ref, e.ID) {
				out = append(out, e)
			}
		})
		return out, err
	}
	x.mu.Lock()
	l, ok := x.at[hashed(deadKey(group, target.ID))]
	x.mu.Unlock()
	if !ok {
		return nil, x.whole()
	}
	out, err = d.readLetters(ctx, t, []letter{l})
	return slices.DeleteFunc(out, func(e driver.Entry) bool { return !named(target, e.Ref, e.ID) }), err
}

// eachDead reads all dead letters of a group, one after the other.
func (d *Driver) eachDead(ctx context.Context, t *topicState, x *letters, group string, use func(*kgo.Record, driver.Entry)) error {
	name := d.deadTopic(t.name)
	n, err := d.partitionsOf(ctx, name)
	if err != nil {
		return err
	}
	spans := map[int32][2]int64{}
	for _, id := range span(n) {
		spans[id] = [2]int64{0, 1 << 62}
	}
	return d.readSpans(ctx, name, spans, func(r *kgo.Record) {
		if r.Value == nil || !strings.HasPrefix(string(r.Key), deadKey(group, "")) || !x.current(r) {
			return
		}
		if e, ok := deadEntry(t.name, r); ok {
			use(r, e)
		}
	})
}

// endAllDead deletes the dead letters of a group.
func (d *Driver) endAllDead(ctx context.Context, t *topicState, group string) error {
	x, err := d.deadLetters(ctx, t)
	if err != nil || x.count(group) == 0 {
		return err
	}
	var ends []*kgo.Record
	var failed error
	if err := d.eachDead(ctx, t, x, group, func(r *kgo.Record, _ driver.Entry) {
		if ends = append(ends, tombstone(r.Topic, r.Partition, string(r.Key))); len(ends) == fireBatch && failed == nil {
			failed = d.produce(ctx, ends...)
			ends = nil
		}
	}); err != nil {
		return err
	}
	if failed == nil {
		failed = x.put(ctx, ends...)
	}
	return failed
}
