package kafka

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"
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

// TestNothingIsPassedOver: what a full partition did not take is fetched again before anything behind it is taken, unless it is gone.
func TestNothingIsPassedOver(t *testing.T) {
	t.Parallel()
	p := &tierPartition{done: newDoneSet(5), bytes: 2 * maxQueuedBytes}
	w := &delays{parts: map[int32]*tierPartition{0: p}}
	feed := func(offset int64) (again bool) {
		w.feed(p, &kgo.Record{Offset: offset}) // no message, but a place
		_, asked := w.full()
		if at, ok := asked[0]; ok && at.Offset != p.done.next {
			t.Fatalf("%d is fetched again, not %d", at.Offset, p.done.next)
		}
		return len(asked) == 1
	}
	if !feed(5) || !feed(6) || p.done.next != 5 {
		t.Fatalf("a full partition took up to %d", p.done.next)
	}
	p.bytes = 0
	if !feed(7) || feed(5) || feed(6) || feed(7) || p.done.next != 8 {
		t.Errorf("up to %d were taken", p.done.next)
	}
	p.bytes = 2 * maxQueuedBytes
	feed(8)
	p.bytes = 0
	for range 3 {
		if !feed(9) {
			t.Error("what is behind it was taken at once")
		}
	}
	if feed(9) || p.done.next != 10 {
		t.Errorf("what is gone holds up what is behind it, at %d", p.done.next)
	}
}

// TestSpreadFits: however what has left lies among what has not, a commit names all of it.
func TestSpreadFits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		base, step := rapid.Int64Range(0, 1000).Draw(t, "base"), rapid.Int64Range(1, 7).Draw(t, "step")
		p := &tierPartition{done: newDoneSet(base)}
		left := int64(0)
		for off := base + 1; !p.spread(&delayed{offset: off}); off += step {
			p.done.set(off)
			left++
		}
		text := p.done.encode(maxMetadata)
		told := newDoneSet(base)
		told.decode(text)
		if len(text) > maxMetadata || told.count != left {
			t.Fatalf("%d of %d are told in %d characters", told.count, left, len(text))
		}
	})
}
