package delay

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/compacted"
	"github.com/ferrymq/ferry/driver/kafka/internal/offsets"
	"github.com/ferrymq/ferry/driver/kafka/internal/record"
)

// Existing returns the delays if anything was ever delayed, and nil otherwise.
func (d *Delays) Existing(ctx context.Context) (*firer, error) {
	if d.registry.Meta.Get(cluster.DelaysKey) == nil {
		return nil, nil
	}
	return d.Start(ctx)
}

// looked is what fires here, with all that is held and all marks from before the call, or nil if nothing was ever
// delayed.
func (d *Delays) looked(ctx context.Context) (*firer, error) {
	w, err := d.Existing(ctx)
	if w == nil || err != nil {
		return nil, err
	}
	return w, w.heldRows.SyncAnswered(ctx)
}

// lives reports whether a message that is in a tier waits for a topic.
func (w *firer) lives(x *Delayed, topic string, now time.Time) bool {
	return x.M.Topic == topic && !w.voided(x) && !x.expired(now)
}

// Find looks for a message among what is delayed or held; nil when it is not there.
func (d *Delays) Find(ctx context.Context, target driver.Target) (found *Delayed, err error) {
	if target.Group != "" || !target.Ref.IsZero() && target.Ref.Sub != record.SubDelay &&
		target.Ref.Sub != record.SubHeld {
		return nil, nil
	}
	w, err := d.looked(ctx)
	if w == nil || err != nil {
		return nil, err
	}
	if found, err = w.findHeld(ctx, target); found != nil || err != nil {
		return found, err
	}
	_, _, err = w.living(ctx, target.Topic, -1, func(x *Delayed) {
		if record.Named(target, x.Ref, x.M.ID) && (found == nil || found.S.Stamp <= x.S.Stamp) {
			found = x
		}
	})
	return found, err
}

// extent is where the messages of a partition of the tiers are that have not left, but for those that have out of turn.
type extent struct {
	from, end int64
	done      *offsets.Set
}

// extents are those of all partitions that hold anything, which end where list says.
func (w *firer) extents(ctx context.Context,
	list func(context.Context, string) (map[int32]int64, error)) (map[int32]extent, error) {
	name := w.d.cluster.DelayTopic()
	// What this process has fired is known by this. Refused in the middle of a rebalance: a look sees a little more.
	_ = w.commit(ctx)
	at, err := w.d.cluster.CommittedOf(ctx, name, name)
	if err != nil {
		return nil, err
	}
	starts, err := w.d.cluster.Starts(ctx, name)
	if err != nil {
		return nil, err
	}
	ends, err := list(ctx, name)
	if err != nil {
		return nil, err
	}
	all := map[int32]extent{}
	for id, end := range ends {
		if from := max(starts[id], at[id].At); from < end {
			all[id] = extent{from, end, offsets.Committed(at[id])}
		}
	}
	return all, nil
}

// living calls use with what waits for a topic in the tiers, up to limit if it is not negative. A message may come
// twice, while it goes from one tier to the next. It returns how many it looked at, of how many.
func (w *firer) living(ctx context.Context, topic string, limit int64, use func(*Delayed)) (looked, all int64,
	err error) {
	list := w.d.cluster.AnsweredEnds
	if limit >= 0 { // an estimate does not wait
		list = w.d.cluster.CommittedEnds
	}
	extents, err := w.extents(ctx, list)
	if err != nil {
		return 0, 0, err
	}
	spans := map[int32][2]int64{}
	for id, x := range extents {
		n := x.end - x.from
		all += n
		if limit >= 0 {
			n = min(n, max(0, limit-looked))
		}
		if looked += n; n > 0 {
			spans[id] = [2]int64{x.from, x.from + n}
		}
	}
	now := w.d.cluster.Now()
	return looked, all, w.d.cluster.ReadSpans(ctx, w.d.cluster.DelayTopic(), spans, func(r *kgo.Record) {
		x, ok := readLater(r)
		if ok && !extents[r.Partition].done.Has(r.Offset) && w.lives(x, topic, now) {
			use(x)
		}
	})
}

// scanned is the most that Stats reads of the tiers.
const scanned = 10_000

// Count estimates how many messages of a topic are delayed: exactly while few wait in all.
func (d *Delays) Count(ctx context.Context, topic string) (waiting, held int64, err error) {
	w, err := d.Existing(ctx)
	if err == nil && w != nil {
		err = w.heldRows.Sync(ctx)
	}
	if w == nil || err != nil {
		return 0, 0, err
	}
	waiting, err = w.count(ctx, topic, scanned)
	return waiting, w.heldRows.Count(heldList(topic)) - int64(len(w.expired(topic, d.cluster.Now()))), err
}

// count counts what waits for a topic, by reading at most limit if it is not negative.
func (w *firer) count(ctx context.Context, topic string, limit int64) (waiting int64, err error) {
	seen := map[compacted.RowKey]bool{}
	looked, all, err := w.living(ctx, topic, limit, func(x *Delayed) {
		if key := compacted.Hashed(x.M.ID); !seen[key] {
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

// Purge ends what is delayed for a topic now, and says how much it was.
func (d *Delays) Purge(ctx context.Context, topic string) (int, error) {
	w, err := d.looked(ctx)
	if w == nil || err != nil {
		return 0, err
	}
	n, err := w.count(ctx, topic, -1)
	if n > 0 && err == nil {
		err = w.voidAll(ctx, topic)
	}
	return int(n), err
}

// EndAll ends all that is delayed or held for a topic.
func (d *Delays) EndAll(ctx context.Context, topic string) error {
	w, err := d.Existing(ctx)
	if w == nil || err != nil {
		return err
	}
	if err := w.voidAll(ctx, topic); err != nil {
		return err
	}
	if w.heldRows.Count(heldList(topic)) == 0 {
		return nil
	}
	return w.heldRows.EndEach(ctx, heldKey(topic, ""))
}
