package container

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

type member struct{ id string }

func (m *member) Name() string { return m.id }

// TestTable compares a table with a map, with good hashes and with bad ones, while it grows and shrinks.
func TestTable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		few := rapid.Uint32Range(1, 1000).Draw(t, "hashes")
		x := NewTable[*member]()
		if good := x.hash; !rapid.Bool().Draw(t, "good hashes") {
			x.hash = func(id string) uint32 { return good(id)%few + 1 }
		}
		model, next := map[string]*member{}, 0
		var ids []string // of model, and some that are gone
		for range rapid.IntRange(1, 20).Draw(t, "phases") {
			adding := rapid.IntRange(0, 3).Draw(t, "of four") // so many are added
			for i := range rapid.IntRange(1, 300).Draw(t, "steps") {
				if i%4 < adding || len(ids) == 0 {
					n := &member{id: fmt.Sprint(next)}
					next++
					x.Put(n)
					model[n.id], ids = n, append(ids, n.id)
				} else if id := ids[next*7919%len(ids)]; model[id] != nil {
					x.Remove(model[id])
					delete(model, id)
				} else {
					ids = ids[1:]
				}
			}
			compareTable(t, &x, ids, model)
		}
	})
}

func compareTable(t *rapid.T, x *Table[*member], ids []string, model map[string]*member) {
	if x.Len() != len(model) {
		t.Fatalf("%d ids, want %d", x.Len(), len(model))
	}
	for _, id := range ids {
		if e, ok := x.Get(id); ok != (model[id] != nil) || e != model[id] {
			t.Fatalf("%s: %v, %v; want %v", id, e, ok, model[id])
		}
	}
	for id, e := range model {
		if got, ok := x.Get(id); !ok || got != e {
			t.Fatalf("%s is lost", id)
		}
	}
}

// TestTableGivesMemoryBack fills a table, empties it, and expects a small one.
func TestTableGivesMemoryBack(t *testing.T) {
	t.Parallel()
	x := NewTable[*member]()
	const n = 100_000
	entries := make([]member, n)
	for i := range entries {
		entries[i].id = fmt.Sprint(i)
		x.Put(&entries[i])
	}
	if slots := len(x.now.hashes); slots > 2*n*4/3 {
		t.Errorf("%d slots for %d ids", slots, n)
	}
	for i := range entries[:n-10] {
		x.Remove(&entries[i])
	}
	if x.Len() != 10 || len(x.now.hashes)+len(x.old.hashes) > 8192 {
		t.Errorf("%d ids in %d and %d slots", x.Len(), len(x.now.hashes), len(x.old.hashes))
	}
	for i := n - 10; i < n; i++ {
		if got, ok := x.Get(entries[i].id); !ok || got != &entries[i] {
			t.Errorf("%d is lost", i)
		}
	}
}
