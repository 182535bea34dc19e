package kafka

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// existingDelays returns the delays if anything was ever delayed, and nil otherwise.
func (d *Driver) existingDelays(ctx context.Context) (*delays, error) {
	if d.meta.get(delaysKey) == nil {
		return nil, nil
	}
	return d.startDelays(ctx)
}

// delayedOf returns what waits or is held for a topic, oldest first. It reads the tiers.
func (d *Driver) delayedOf(ctx context.Context, topic string) ([]*delayed, error) {
	w, err := d.existingDelays(ctx)
	if w == nil || err != nil {
		return nil, err
	}
	if err := w.held.sync(ctx); err != nil {
		return nil, err
	}
	now, found := d.now(), map[string]*delayed{}
	_, _, err = w.scan(ctx, -1, func(x *delayed) {
		if have := found[x.m.ID]; x.m.Topic == topic && !w.voided(x) && !x.expired(now) && (have == nil || have.s.Stamp <= x.s.Stamp) {
			found[x.m.ID] = x
		}
	})
	if err != nil {
		return nil, err
	}
	out := w.heldOf(topic, now)
	for _, x := range found {
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b *delayed) int {
		return cmp.Or(a.m.PublishedAt.Compare(b.m.PublishedAt), cmp.Compare(a.ref.Pos, b.ref.Pos), cmp.Compare(a.m.ID, b.m.ID))
	})
	return out, nil
}

// heldOf returns what is held for a topic.
func (w *delays) heldOf(topic string, now time.Time) (out []*delayed) {
	for _, r := range w.held.all() {
		if strings.HasPrefix(string(r.Key), heldKey(topic, "")) {
			if x, ok := readLater(r); ok && !x.expired(now) {
				out = append(out, x)
			}
		}
	}
	return out
}

// scan calls use with what is in the tiers, up to limit if it is not negative. It returns how many it looked at, of how many.
func (w *delays) scan(ctx context.Context, limit int64, use func(*delayed)) (looked, all int64, err error) {
	name := w.d.delayTopic()
	if err := w.commit(ctx); err != nil { // what this process has fired is known by this
		_ = err // refused in the middle of a rebalance: the scan sees a little more
	}
	at, err := w.d.committedOf(ctx, name, name)
	if err != nil {
		return 0, 0, err
	}
	starts, err := w.d.admin.ListStartOffsets(ctx, name)
	if err != nil {
		return 0, 0, unreached("reading offsets", err)
	}
	ends, err := w.d.admin.ListEndOffsets(ctx, name)
	if err != nil {
		return 0, 0, unreached("reading offsets", err)
	}
	done, spans := map[int32]*doneSet{}, map[int32][2]int64{}
	for id, end := range ends[name] {
		start, _ := starts.Lookup(name, id)
		from := max(start.Offset, at[id].At)
		if from >= end.Offset {
			continue
		}
		done[id] = newDoneSet(max(0, at[id].At))
		done[id].readMetadata(at[id].Metadata)
		n := end.Offset - from
		all += n
		if limit >= 0 {
			n = min(n, max(0, limit-looked))
		}
		if looked += n; n > 0 {
			spans[id] = [2]int64{from, from + n}
		}
	}
	return looked, all, w.d.readSpans(ctx, name, spans, func(r *kgo.Record) {
		if x, ok := readLater(r); ok && !done[r.Partition].has(r.Offset) {
			use(x)
		}
	})
}

// scanned is the most that Stats reads of the tiers.
const scanned = 10_000

// countDelayed estimates how many messages of a topic are delayed: exactly while few wait in all.
func (d *Driver) countDelayed(ctx context.Context, topic string) (waiting, held int64, err error) {
	w, err := d.existingDelays(ctx)
	if w == nil || err != nil {
		return 0, 0, err
	}
	if err := w.held.sync(ctx); err != nil {
		return 0, 0, err
	}
	now, found := d.now(), map[string]bool{}
	looked, all, err := w.scan(ctx, scanned, func(x *delayed) {
		if x.m.Topic == topic && !w.voided(x) && !x.expired(now) {
			found[x.m.ID] = true
		}
	})
	waiting = int64(len(found))
	if looked < all && looked > 0 {
		waiting = waiting * all / looked
	}
	return waiting, int64(len(w.heldOf(topic, now))), err
}
