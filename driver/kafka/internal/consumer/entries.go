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

// Orphans are in flight without a lease, in the partitions of this process.
func (vs *views) Orphans() (out []driver.Problem) {
	for p := range vs.parts() {
		for it := range p.items.all() {
			if it.state == inflight && it.claimed == nil && !p.m.Visit {
				out = append(out, driver.Problem{Kind: "orphan", Group: p.m.group, ID: it.Msg.ID,
					Text: "in flight without a lease"})
			}
		}
	}
	return out
}

// Found is an entry with its place in a listing, which is also the cursor.
type Found struct {
	driver.Entry
	At    string
	spill *kgo.Record // where its content is, if not in memory
}

// Whole returns entries with the content that is not in memory, unless they were settled meanwhile.
func (d *Groups) Whole(ctx context.Context, found []Found) (out []driver.Entry, err error) {
	for _, f := range found {
		if f.spill != nil {
			r, err := d.cluster.ReadOne(ctx, f.spill.Topic, f.spill.Partition, f.spill.Offset)
			if err != nil {
				return nil, err
			}
			if m, history, err := contentOf(f.Topic, r); err == nil {
				f.Message, f.History = m, history
			}
		}
		out = append(out, f.Entry)
	}
	return out, nil
}

// contentOf is what a record of a retry log has of a message that is not in memory.
func contentOf(topic string, r *kgo.Record) (*driver.Message, []driver.Failure, error) {
	if r == nil || r.Value == nil {
		return nil, nil, driver.NewError(driver.ErrNotApplied, "the body of a parked message is not where it was stored",
			"run ferry doctor: somebody else changed an internal topic", nil)
	}
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
		waiting: driver.StateWaiting}[it.state]
}

// Entries returns copies of the items that match.
func (vs *views) Entries(match func(*Item) bool) (out []Found) {
	for p := range vs.parts() {
		for it := range p.items.all() {
			if !match(it) {
				continue
			}
			f := Found{Entry: it.entry(p.m.group), At: record.SortKey(it.Msg.PublishedAt.UnixMilli(), it.Ref)}
			if it.spilled {
				f.spill = &kgo.Record{Topic: p.m.retryName, Partition: p.id, Offset: it.logOffset}
			}
			out = append(out, f)
		}
	}
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

// Unread reports whether an offset in the main topic lies beyond what was read of its partition.
func (vs *views) Unread(ref driver.Ref) bool {
	at := int64(ref.Pos) - 1
	for p := range vs.parts() {
		if p.id == ref.Partition && !ref.IsZero() && ref.Sub == 0 && at >= p.done.Next && !p.done.Has(at) {
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
	for p := range vs.parts() {
		for it := range p.items.all() {
			if p.m.Visit && it.logKey == "" && it.offset >= p.tally.Next {
				continue
			}
			e := driver.PendingEntry{Ref: it.Ref, ID: it.Msg.ID, Deliveries: it.lost + 1, State: it.EntryState()}
			if c := it.claimed; c != nil {
				e.Instance, e.Idle = c.sub.o.Instance, max(0, now.Sub(c.until.Add(-c.sub.o.Lease)))
			}
			out = append(out, Pending{e, fmt.Sprintf("%06d.%016d.%d", p.id, it.Ref.Pos, it.Ref.Sub)})
		}
	}
	return out
}
