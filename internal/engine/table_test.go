package engine

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// TestTable compares a table with a map, with good hashes and with bad ones, while it grows and shrinks.
func TestTable(t *testing.T) {
	t.Parallel()
	e := New(testOptions())
	rapid.Check(t, func(t *rapid.T) {
		few := rapid.Uint32Range(1, 1000).Draw(t, "hashes")
		x := table[*entry]{hash: func(id string) uint32 { return e.hash(id)%few + 1 }}
		if rapid.Bool().Draw(t, "good hashes") {
			x.hash = e.hash
		}
		model, next := map[string]*entry{}, 0
		var ids []string // of model, and some that are gone
		for range rapid.IntRange(1, 20).Draw(t, "phases") {
			adding := rapid.IntRange(0, 3).Draw(t, "of four") // so many are added
			for i := range rapid.IntRange(1, 300).Draw(t, "steps") {
				if i%4 < adding || len(ids) == 0 {
					n := &entry{id: fmt.Sprint(next)}
					next++
					x.put(n)
					model[n.id], ids = n, append(ids, n.id)
				} else if id := ids[next*7919%len(ids)]; model[id] != nil {
					x.remove(model[id])
					delete(model, id)
				} else {
					ids = ids[1:]
				}
			}
			compareTable(t, &x, ids, model)
		}
	})
}

func compareTable(t *rapid.T, x *table[*entry], ids []string, model map[string]*entry) {
	if x.len() != len(model) {
		t.Fatalf("%d ids, want %d", x.len(), len(model))
	}
	for _, id := range ids {
		if e, ok := x.get(id); ok != (model[id] != nil) || e != model[id] {
			t.Fatalf("%s: %v, %v; want %v", id, e, ok, model[id])
		}
	}
	for id, e := range model {
		if got, ok := x.get(id); !ok || got != e {
			t.Fatalf("%s is lost", id)
		}
	}
}

// TestTableGivesMemoryBack fills a table, empties it, and expects a small one.
func TestTableGivesMemoryBack(t *testing.T) {
	t.Parallel()
	e := New(testOptions())
	x := table[*entry]{hash: e.hash}
	const n = 100_000
	entries := make([]entry, n)
	for i := range entries {
		entries[i].id = fmt.Sprint(i)
		x.put(&entries[i])
	}
	if slots := len(x.now.hashes); slots > 2*n*4/3 {
		t.Errorf("%d slots for %d ids", slots, n)
	}
	for i := range entries[:n-10] {
		x.remove(&entries[i])
	}
	if x.len() != 10 || len(x.now.hashes)+len(x.old.hashes) > 8192 {
		t.Errorf("%d ids in %d and %d slots", x.len(), len(x.now.hashes), len(x.old.hashes))
	}
	for i := n - 10; i < n; i++ {
		if got, ok := x.get(entries[i].id); !ok || got != &entries[i] {
			t.Errorf("%d is lost", i)
		}
	}
}
