package consumer

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

// TestSmall: what is made for every message is an object that the collector handles with little work.
func TestSmall(t *testing.T) {
	t.Parallel()
	if entry, delivery := unsafe.Sizeof(Item{}), unsafe.Sizeof(claim{}); entry > 512 || delivery > 512 {
		t.Errorf("an item has %d bytes and a delivery %d: make them smaller, or measure what it costs", entry, delivery)
	}
}

// TestItems: blocks hold what a map would, whatever comes and goes, and keep nothing that is empty.
func TestItems(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		s, model := newItems(), map[itemKey]*Item{}
		offsets := rapid.Custom(func(r *rapid.T) int64 {
			return int64(rapid.IntRange(0, 3).Draw(r, "far"))<<40 + int64(rapid.IntRange(0, 3*blockItems).Draw(r, "near"))
		})
		for range rapid.IntRange(1, 200).Draw(r, "steps") {
			it := &Item{offset: -1}
			if rapid.IntRange(0, 9).Draw(r, "side") == 0 {
				it.logKey = fmt.Sprint(rapid.IntRange(0, 3).Draw(r, "key"))
			} else {
				it.offset = offsets.Draw(r, "offset")
			}
			if rapid.Bool().Draw(r, "put") {
				s.put(it)
				model[keyed(it)] = it
			} else {
				s.drop(it)
				delete(model, keyed(it))
			}
			if s.of(it.offset, it.logKey) != model[keyed(it)] {
				r.Fatalf("item %v is not what was put there last", keyed(it))
			}
		}
		found := map[itemKey]*Item{}
		for it := range s.all() {
			found[keyed(it)] = it
		}
		if !maps.Equal(found, model) {
			r.Fatalf("%d items, want %d", len(found), len(model))
		}
		for it := range s.all() { // what is dropped meanwhile does not come
			if found[keyed(it)] == nil {
				r.Fatalf("item %v came after it was dropped", keyed(it))
			}
			for _, x := range slices.Collect(maps.Values(found)) {
				s.drop(x)
				delete(found, keyed(x))
			}
		}
		if len(s.blocks)+len(s.byLogKey) > 0 {
			r.Fatalf("%d blocks are kept of nothing", len(s.blocks))
		}
	})
}

// itemKey is what an item is known by.
type itemKey struct {
	offset int64
	logKey string
}

func keyed(it *Item) itemKey { return itemKey{it.offset, it.logKey} }
