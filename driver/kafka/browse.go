package kafka

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/envelope"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// found is an entry with its place in a listing, which is also the cursor.
type found struct {
	driver.Entry
	at    string
	spill *spot // where its content is, if not in memory
}

// spot is a record of a side log.
type spot struct {
	topic     string
	partition int32
	offset    int64
}

// whole reads the content of entries that are not in memory.
func (d *Driver) whole(ctx context.Context, fs ...*found) error {
	for _, f := range fs {
		if f.spill == nil {
			continue
		}
		r, err := d.readOne(ctx, f.spill.topic, f.spill.partition, f.spill.offset)
		if err != nil {
			return err
		}
		if r == nil || r.Value == nil {
			continue // settled meanwhile
		}
		if m, err := envelope.Decode(r.Value); err == nil {
			m.Topic = f.Topic
			f.Message = m
		}
		if s, ok := stateOf(r); ok {
			f.History, _ = envelope.DecodeHistory(s.History)
		}
	}
	return nil
}

// sortKey orders by time, then by place in the log.
func sortKey(ms int64, ref driver.Ref) string {
	return fmt.Sprintf("%016d.%06d.%016d.%d", ms, ref.Partition, ref.Pos, ref.Sub)
}

// Browse returns a page of entries in one state, oldest first.
func (d *Driver) Browse(ctx context.Context, q driver.Query) (driver.Page, error) {
	q, err := q.Resolve(d.caps)
	if err != nil {
		return driver.Page{}, err
	}
	page, err := d.browse(ctx, q)
	page.Next = q.Continue(d.caps, page.Next)
	return page, err
}

func (d *Driver) browse(ctx context.Context, q driver.Query) (driver.Page, error) {
	t, err := d.existing(ctx, q.Topic)
	if err != nil {
		return driver.Page{}, err
	}
	switch q.State {
	case driver.StateDead:
		if err := d.checkGroup(t, q.Group); err != nil {
			return driver.Page{}, err
		}
		x, err := d.deadLetters(ctx, t)
		if err != nil {
			return driver.Page{}, err
		}
		return x.browse(ctx, q.Group, q, readDead(t))
	case driver.StateDelayed, driver.StateHeld:
		return d.laterPage(ctx, t.name, q)
	case driver.StateInvalid:
		return d.invalidPage(ctx, t, q)
	}
	all, err := d.inState(ctx, t, q.Group, q.State)
	if err != nil {
		return driver.Page{}, err
	}
	slices.SortFunc(all, func(a, b found) int { return cmp.Compare(a.at, b.at) })
	var page driver.Page
	for i, f := range all {
		if f.at <= q.Cursor {
			continue
		}
		if err := d.whole(ctx, &f); err != nil {
			return driver.Page{}, err
		}
		page.Entries = append(page.Entries, f.Entry)
		page.Scanned++
		if more := i+1 < len(all); more && (len(page.Entries) == q.Limit || page.Scanned == q.MaxScan) {
			page.Next = f.at
			break
		}
	}
	return page, nil
}

func (d *Driver) inState(ctx context.Context, t *topicState, group string, state driver.State) ([]found, error) {
	if err := d.checkGroup(t, group); err != nil {
		return nil, err
	}
	if state == driver.StateDone {
		return nil, nil
	}
	vs, err := d.look(ctx, t, group)
	if err != nil {
		return nil, err
	}
	defer vs.close()
	return vs.entries(func(it *item) bool { return it.entryState() == state }), nil
}

// checkGroup refuses to browse a group that does not exist.
func (d *Driver) checkGroup(t *topicState, group string) error {
	var row groupRow
	if !d.metaRow(groupKey(t.name, group), &row) {
		return errNoGroup(t.name, group)
	}
	return nil
}

func (it *item) entryState() driver.State {
	return [...]driver.State{gone: "", ready: driver.StateReady, inflight: driver.StateInflight, waiting: driver.StateWaiting, aside: driver.StateReady}[it.state]
}

// entries returns copies of the items that match.
func (vs *views) entries(match func(*item) bool) (out []found) {
	for _, v := range vs.all {
		out = append(out, v.entries(match)...)
	}
	return out
}

func (v *view) entries(match func(*item) bool) (out []found) {
	v.mu.Lock()
	defer v.mu.Unlock()
	seen := map[*item]bool{}
	for _, p := range v.parts {
		for it := range p.items.all() {
			if !seen[it] && it.state != gone && match(it) {
				seen[it] = true
				f := found{Entry: it.entry(v.group), at: sortKey(it.msg.PublishedAt.UnixMilli(), it.ref)}
				if it.spilled {
					f.spill = &spot{v.sideName, p.id, it.at}
				}
				out = append(out, f)
			}
		}
	}
	return out
}

func (it *item) entry(group string) driver.Entry {
	e := driver.Entry{Message: it.msg.Clone(), Ref: it.ref, Group: group, State: it.entryState(), Attempt: it.attempts + 1, Deliveries: it.lost + 1,
		ExpiresAt: it.expires(), History: slices.Clone(it.history)}
	if it.state == waiting {
		e.DueAt = it.due
	}
	if it.claimed != nil {
		e.Instance = it.claimed.sub.o.Instance
	}
	return e
}

func (x *delayed) entry() driver.Entry {
	e := driver.Entry{Message: x.m, Ref: x.ref, State: driver.StateDelayed, Attempt: 1, Deliveries: 1, DueAt: x.due, ExpiresAt: x.expires()}
	if x.s.Hold {
		e.State = driver.StateHeld
	}
	return e
}

func deadEntry(topic string, r *kgo.Record) (driver.Entry, bool) {
	dl, err := envelope.DecodeDeadLetter(r.Value)
	if err != nil {
		return driver.Entry{}, false
	}
	dl.Message.Topic = topic
	return driver.Entry{Message: dl.Message, Ref: dl.Origin.Ref, Group: dl.Origin.Group, State: driver.StateDead, Attempt: dl.Attempts + 1,
		Deliveries: dl.Deliveries, History: dl.History, Dead: dl}, true
}

// invalidPage is a page of the broken records of a topic. Groups without consumers are looked through first: whoever reads them finds them.
func (d *Driver) invalidPage(ctx context.Context, t *topicState, q driver.Query) (driver.Page, error) {
	for _, g := range d.groupsOf(t.name) {
		vs, err := d.look(ctx, t, g)
		if err != nil {
			return driver.Page{}, err
		}
		for _, v := range vs.all {
			if v.visit && !v.busy && len(v.bad) > 0 {
				err = errors.Join(err, v.finish(ctx))
			}
		}
		vs.close()
		if err != nil && !errors.Is(err, errTaken) {
			return driver.Page{}, err
		}
	}
	x, err := d.invalidRows(ctx, t)
	if err != nil {
		return driver.Page{}, err
	}
	return x.browse(ctx, invalidList, q, invalidEntry)
}

func invalidEntry(r *kgo.Record) (driver.Entry, bool) {
	s, ok := stateOf(r)
	return driver.Entry{Ref: s.Ref, State: driver.StateInvalid, Raw: bytes.Clone(r.Value), Problem: headerOf(r, problemHeader), FoundAt: r.Timestamp.UTC()}, ok
}
