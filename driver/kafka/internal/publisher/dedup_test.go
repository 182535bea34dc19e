package publisher

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry/driver/kafka/internal/registry"
)

// TestReservations: an id that a call publishes makes others wait; only what was stored makes a duplicate, and only for
// its window.
func TestReservations(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ids, one, other := newDedupIDs(), newCall(1, Bounds), newCall(1, Bounds)
		if _, fresh, _ := ids.reserve("k", "first", time.Minute, one); !fresh {
			t.Fatal("a new id is not new")
		}
		if first, fresh, open := ids.reserve("k", "again", time.Minute, one); fresh || open != nil || first != "first" {
			t.Errorf("within its call a repeat is %q, new %v, and waits: %v", first, fresh, open != nil)
		}
		_, fresh, open := ids.reserve("k", "again", time.Minute, other)
		if fresh || open == nil {
			t.Fatalf("another call does not wait for what becomes of it")
		}
		ids.Resolve([]string{"k"}, false)
		<-open
		if _, fresh, _ = ids.reserve("k", "second", time.Minute, other); !fresh {
			t.Error("what was not stored makes a duplicate")
		}
		ids.Resolve([]string{"k"}, true)
		if first, fresh, open := ids.reserve("k", "third", time.Minute, one); fresh || open != nil || first != "second" {
			t.Errorf("a repeat of what was stored is %q, new %v, and waits: %v", first, fresh, open != nil)
		}
		time.Sleep(time.Minute)
		if _, fresh, _ := ids.reserve("k", "fourth", time.Minute, one); !fresh {
			t.Error("an id makes duplicates beyond its window")
		}
		ids.Resolve([]string{"k"}, true)
		time.Sleep(2 * time.Minute)
		ids.reserve("l", "fifth", time.Minute, one)
		if len(ids.ids) != 1 {
			t.Errorf("%d ids are remembered, and one is needed", len(ids.ids))
		}
	})
}

// TestSpread: of few messages without a key each goes to another partition, of many a partition gets long batches; a
// key always goes to the same one.
func TestSpread(t *testing.T) {
	t.Parallel()
	topic := &registry.TopicState{Name: "orders", Partitions: 4}
	few := newCall(4, Bounds)
	seen := map[int32]int{}
	for range 4 {
		seen[few.partitionFor(topic, "")]++
	}
	if len(seen) != 4 {
		t.Errorf("4 messages are in %d partitions", len(seen))
	}
	many := newCall(1000, Bounds)
	last, changes := many.partitionFor(topic, ""), 0
	for range 999 {
		if p := many.partitionFor(topic, ""); p != last {
			last = p
			changes++
		}
		many.partitionFor(topic, "k")
	}
	if changes != 1 {
		t.Errorf("1000 messages change their partition %d times, want once", changes)
	}
	if a, b := many.partitionFor(topic, "k"), few.partitionFor(topic, "k"); a != b {
		t.Errorf("a key is in partitions %d and %d", a, b)
	}
}
