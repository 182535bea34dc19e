package consumer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/record"
	"github.com/ferrymq/ferry/internal/envelope"
)

// Orphans are in flight without a lease.
func (v *view) Orphans() (out []driver.Problem) {
	v.each(func(_ *partition, it *Item) {
		if it.state == inflight && it.claimed == nil {
			out = append(out, driver.Problem{Kind: "orphan", Group: v.group, ID: it.Msg.ID, Text: "in flight without a lease"})
		}
	})
	return out
}

// each calls use with the items that are not settled.
func (v *view) each(use func(*partition, *Item)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, p := range v.parts {
		for it := range p.items.all() {
			if it.state != gone {
				use(p, it)
			}
		}
	}
}

// Found is an entry with its place in a listing, which is also the cursor.
type Found struct {
	driver.Entry
	At    string
	spill *spot // where its content is, if not in memory
}

// spot is a record of a retry log.
type spot struct {
	topic     string
	partition int32
	offset    int64
}

// Whole reads the content of entries that are not in memory.
func (d *Groups) Whole(ctx context.Context, fs ...*Found) error {
	for _, f := range fs {
		if f.spill == nil {
			continue
		}
		r, err := d.cluster.ReadOne(ctx, f.spill.topic, f.spill.partition, f.spill.offset)
		if err != nil {
			return err
		}
		if r == nil || r.Value == nil {
			continue // settled meanwhile
		}
		if m, history, err := contentOf(f.Topic, r); err == nil {
			f.Message, f.History = m, history
		}
	}
	return nil
}

// contentOf is what a record of a retry log has of a message that is not in memory.
func contentOf(topic string, r *kgo.Record) (*driver.Message, []driver.Failure, error) {
	m, err := envelope.Decode(r.Value)
	if err != nil {
		return nil, nil, err
	}
	m.Topic = topic
	s, _ := record.StateOf(r)
	history, _ := envelope.DecodeHistory(s.History)
	return m, history, nil
}

// EntryState is the state of an item as operators see it.
func (it *Item) EntryState() driver.State {
	return [...]driver.State{gone: "", ready: driver.StateReady, inflight: driver.StateInflight,
		waiting: driver.StateWaiting, aside: driver.StateReady}[it.state]
}

// Entries returns copies of the items that match.
func (vs *views) Entries(match func(*Item) bool) (out []Found) {
	for _, v := range vs.All {
		out = append(out, v.Entries(match)...)
	}
	return out
}

// Entries returns copies of the items that match.
func (v *view) Entries(match func(*Item) bool) (out []Found) {
	v.each(func(p *partition, it *Item) {
		if !match(it) {
			return
		}
		f := Found{Entry: it.entry(v.group), At: record.SortKey(it.Msg.PublishedAt.UnixMilli(), it.Ref)}
		if it.spilled {
			f.spill = &spot{v.retryName, p.id, it.logOffset}
		}
		out = append(out, f)
	})
	return out
}

func (it *Item) entry(group string) driver.Entry {
	e := driver.Entry{Message: it.Msg.Clone(), Ref: it.Ref, Group: group, State: it.EntryState(), Attempt: it.attempts + 1,
		Deliveries: it.lost + 1, ExpiresAt: it.expires(), History: slices.Clone(it.history)}
	if it.state == waiting {
		e.DueAt = it.due
	}
	if it.claimed != nil {
		e.Instance = it.claimed.sub.o.Instance
	}
	return e
}

// Unread reports whether a place in the main topic lies beyond what was read of its partition.
func (vs *views) Unread(ref driver.Ref) bool {
	if ref.IsZero() || ref.Sub != 0 {
		return false
	}
	for _, v := range vs.All {
		v.mu.Lock()
		p := v.parts[ref.Partition]
		found := p != nil && int64(ref.Pos)-1 >= p.done.Next && !p.done.Has(int64(ref.Pos)-1)
		v.mu.Unlock()
		if found {
			return true
		}
	}
	return false
}

// Pending is an entry with its place in a listing, which is also the cursor.
type Pending struct {
	driver.PendingEntry
	At string
}

// Pending lists what has been read by owners and is not settled. A visit also reads what they have not; that is left
// out.
func (vs *views) Pending(now time.Time) (out []Pending) {
	for _, v := range vs.All {
		v.each(func(p *partition, it *Item) {
			if v.Visit && it.logKey == "" && it.offset >= p.tally.Next {
				return
			}
			e := driver.PendingEntry{Ref: it.Ref, ID: it.Msg.ID, Deliveries: it.lost + 1, State: it.EntryState()}
			if c := it.claimed; c != nil {
				e.Instance, e.Idle = c.sub.o.Instance, max(0, now.Sub(c.until.Add(-c.sub.o.Lease)))
			}
			out = append(out, Pending{e, fmt.Sprintf("%06d.%016d.%d", p.id, it.Ref.Pos, it.Ref.Sub)})
		})
	}
	return out
}
