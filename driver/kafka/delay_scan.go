package kafka

import (
	"cmp"
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
)

// existingDelays returns the delays if anything was ever delayed, and nil otherwise.
func (d *Driver) existingDelays(ctx context.Context) (*delays, error) {
	if d.meta.get(delaysKey) == nil {
		return nil, nil
	}
	return d.startDelays(ctx)
}

// living calls use with what waits for a topic in the tiers. A message may come twice, while it goes from one tier to the next.
func (w *delays) living(ctx context.Context, topic string, limit int64, use func(*delayed)) (looked, all int64, err error) {
	if err := w.held.sync(ctx); err != nil {
		return 0, 0, err
	}
	now := w.d.now()
	return w.scan(ctx, limit, func(x *delayed) {
		if x.m.Topic == topic && !w.voided(x) && !x.expired(now) {
			use(x)
		}
	})
}

// laterPage is a page of what is delayed or held for a topic, oldest first. For what is delayed it reads the tiers.
func (d *Driver) laterPage(ctx context.Context, topic string, q driver.Query) (page driver.Page, err error) {
	w, err := d.existingDelays(ctx)
	if w == nil || err != nil {
		return page, err
	}
	if q.State == driver.StateHeld {
		if err := w.held.sync(ctx); err != nil {
			return page, err
		}
		return w.held.browse(ctx, heldList(topic), q, readHeld(d.now()))
	}
	var first []foundLater
	n := min(q.Limit, q.MaxScan)
	if _, _, err := w.living(ctx, topic, -1, func(x *delayed) {
		if at := sortKey(x.m.PublishedAt.UnixMilli(), x.ref); at > q.Cursor {
			if first = append(first, foundLater{at, x}); len(first) >= 2*n+100 {
				first = oldest(first, n+1)
			}
		}
	}); err != nil {
		return page, err
	}
	first = oldest(first, n+1)
	if len(first) > n {
		first = first[:n]
		page.Next = first[n-1].at
	}
	for _, f := range first {
		page.Entries = append(page.Entries, f.x.entry())
	}
	page.Scanned = len(first)
	return page, nil
}

// foundLater is a delayed message with its place in a listing.
type foundLater struct {
	at string
	x  *delayed
}

// oldest keeps the first n of a listing, and of each message the newest copy.
func oldest(all []foundLater, n int) []foundLater {
	slices.SortFunc(all, func(a, b foundLater) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(b.x.s.Stamp, a.x.s.Stamp))
	})
	all = slices.CompactFunc(all, func(a, b foundLater) bool { return a.at == b.at })
	return all[:min(len(all), n)]
}

// findDelayed looks for a message among what is delayed or held; nil when it is not there.
func (d *Driver) findDelayed(ctx context.Context, target driver.Target) (found *delayed, err error) {
	if target.Group != "" || !target.Ref.IsZero() && target.Ref.Sub != subDelay && target.Ref.Sub != subHeld {
		return nil, nil
	}
	w, err := d.existingDelays(ctx)
	if w == nil || err != nil {
		return nil, err
	}
	if err := w.held.sync(ctx); err != nil {
		return nil, err
	}
	if found, err = w.findHeld(ctx, target); found != nil || err != nil {
		return found, err
	}
	_, _, err = w.living(ctx, target.Topic, -1, func(x *delayed) {
		if named(target, x.ref, x.m.ID) && (found == nil || found.s.Stamp <= x.s.Stamp) {
			found = x
		}
	})
	return found, err
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
	waiting, err = w.count(ctx, topic, scanned)
	return waiting, w.held.count(heldList(topic)) - int64(len(w.expired(topic, d.now()))), err
}

// count counts what waits for a topic, by reading at most limit if it is not negative.
func (w *delays) count(ctx context.Context, topic string, limit int64) (waiting int64, err error) {
	seen := map[rowKey]bool{}
	looked, all, err := w.living(ctx, topic, limit, func(x *delayed) {
		if key := hashed(x.m.ID); !seen[key] {
			if waiting++; len(seen) < countedOnce {
				seen[key] = true
			}
		}
	})
	if looked < all && looked > 0 {
		waiting = waiting * all / looked
	}
	return waiting, err
}

// countedOnce is up to how many messages it matters that one is just going from one tier to the next.
const countedOnce = 100_000
