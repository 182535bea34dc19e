package delay

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/offsets"
	"github.com/ferrymq/ferry/driver/kafka/internal/record"
	"github.com/ferrymq/ferry/internal/container"
)

// TestTiers: whatever the delay, the hops through the tiers end before it is due, and are few.
func TestTiers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		remaining := time.Duration(rapid.Int64Range(0, int64(90*24*time.Hour)).Draw(t, "delay"))
		days := int(remaining / (18 * time.Hour))
		hops := 0
		for remaining >= lastStretch {
			tier := tierFor(remaining)
			if tier == 0 {
				t.Fatalf("%v does not fit into a tier", remaining)
			}
			remaining -= tierWait(tier)
			hops++
		}
		if remaining < 0 || hops > 3*tiers+2*days {
			t.Fatalf("%v left after %d hops", remaining, hops)
		}
	})
}

// TestNothingIsPassedOver: what a full partition did not take is fetched again before anything behind it is taken,
// unless it is gone.
func TestNothingIsPassedOver(t *testing.T) {
	t.Parallel()
	p := &tierPartition{done: offsets.NewSet(5), bytes: 2 * maxQueuedBytes}
	w := &firer{parts: map[int32]*tierPartition{0: p}}
	feed := func(offset int64) (again bool) {
		w.feed(p, &kgo.Record{Offset: offset}) // no message, but a place
		_, _, asked := w.turn()
		if at, ok := asked[0]; ok && at.Offset != p.done.Next {
			t.Fatalf("%d is fetched again, not %d", at.Offset, p.done.Next)
		}
		return len(asked) == 1
	}
	if !feed(5) || !feed(6) || p.done.Next != 5 {
		t.Fatalf("a full partition took up to %d", p.done.Next)
	}
	p.bytes = 0
	if !feed(7) || feed(5) || feed(6) || feed(7) || p.done.Next != 8 {
		t.Errorf("up to %d were taken", p.done.Next)
	}
	p.bytes = 2 * maxQueuedBytes
	feed(8)
	p.bytes = 0
	for range 3 {
		if !feed(9) {
			t.Error("what is behind it was taken at once")
		}
	}
	if feed(9) || p.done.Next != 10 {
		t.Errorf("what is gone holds up what is behind it, at %d", p.done.Next)
	}
}

// TestSpreadFits: however what has left lies among what has not, a commit names all of it.
func TestSpreadFits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		base, step := rapid.Int64Range(0, 1000).Draw(t, "base"), rapid.Int64Range(1, 7).Draw(t, "step")
		p := &tierPartition{done: offsets.NewSet(base)}
		left := int64(0)
		for off := base + 1; !p.spread(&Delayed{offset: off}); off += step {
			p.done.Set(off)
			left++
		}
		text := p.done.Encode(offsets.MaxMetadata)
		told := offsets.NewSet(base)
		told.Decode(text)
		if len(text) > offsets.MaxMetadata || told.Count != left {
			t.Fatalf("%d of %d are told in %d characters", told.Count, left, len(text))
		}
	})
}

// TestExpiredLeaves: what expires before it is due leaves its tier in time for that, and rings then. It does not stay
// until it is due, when it would hold up what has left after it.
func TestExpiredLeaves(t *testing.T) {
	t.Parallel()
	now := time.Now()
	m := &driver.Message{ID: "a", Topic: "t", TTL: time.Minute}
	w := &firer{parts: map[int32]*tierPartition{}, timers: container.NewHeap[int64](func(*Delayed, int32) {}), width: 1,
		d: &Delays{cluster: &cluster.Cluster{}}}
	m.PublishedAt = now
	if r := w.TierRecord(m, record.State{After: 24 * time.Hour}, 24*time.Hour); tierWait(int(r.Partition)) > m.TTL {
		t.Errorf("it waits in tier %d for %v", r.Partition, tierWait(int(r.Partition)))
	}
	m.PublishedAt = now.Add(-2 * time.Minute)
	p := &tierPartition{done: offsets.NewSet(0)}
	p.queue = []*Delayed{{M: m, p: p, leave: now, due: now.Add(24 * time.Hour)}}
	w.parts[0] = p
	if moving, _ := w.leaving(now); len(moving) != 0 || w.timers.Len() != 1 || w.timers.Next() > now.UnixNano() {
		t.Errorf("%d go on, and %d wait for a timer", len(moving), w.timers.Len())
	}
}
