package engine

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestSequence compares a sequence with a map, over random puts, removals and walks.
func TestSequence(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var q sequence[uint64]
		model, last := map[uint64]uint64{}, uint64(0)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if n := len(model); n > 0 && rapid.Bool().Draw(t, "remove") {
				at := rapid.SampledFrom(slices.Sorted(maps.Keys(model))).Draw(t, "at")
				q.remove(at)
				q.remove(at) // harmless
				delete(model, at)
			} else {
				last += rapid.Uint64Range(1, 2*segmentSize).Draw(t, "gap")
				v := last
				q.put(last, &v)
				model[last] = last
			}
			compareSequence(t, &q, model, rapid.Uint64Range(0, last+1).Draw(t, "from"))
		}
	})
}

func compareSequence(t *rapid.T, q *sequence[uint64], model map[uint64]uint64, from uint64) {
	var got, want []uint64
	q.after(from, func(at uint64, v *uint64) bool { got = append(got, at); return *v == at })
	for _, at := range slices.Sorted(maps.Keys(model)) {
		if q.get(at) == nil {
			t.Fatalf("%d is missing", at)
		}
		if at > from {
			want = append(want, at)
		}
	}
	if !slices.Equal(got, want) || q.count != len(model) {
		t.Fatalf("after %d: got %v, want %v; count %d", from, got, want, q.count)
	}
	for i, s := range q.segments {
		if s.live == 0 && i < len(q.segments)-1 {
			t.Fatal("an empty segment was not freed")
		}
	}
}

// TestHeap compares a heap with sorting, over random pushes and removals from the middle.
func TestHeap(t *testing.T) {
	t.Parallel()
	type member struct {
		key tick
		at  int32
	}
	rapid.Check(t, func(t *rapid.T) {
		h := heap[*member]{moved: func(m *member, at int32) { m.at = at }}
		var model []*member
		for i := range rapid.IntRange(1, 300).Draw(t, "steps") {
			if len(model) > 0 && rapid.IntRange(0, 2).Draw(t, "remove") == 0 {
				n := rapid.IntRange(0, len(model)-1).Draw(t, "which")
				h.removeAt(model[n].at)
				if model[n].at != nowhere {
					t.Fatal("a removed member believes to be in the heap")
				}
				model = slices.Delete(model, n, n+1)
			} else {
				m := &member{key: tick(rapid.IntRange(0, 50).Draw(t, "key"))}
				model = append(model, m)
				h.push(m.key, uint64(i), m)
			}
			want := never
			for _, m := range model {
				want = min(want, m.key)
				if h.slots[m.at].v != m {
					t.Fatal("a member has the wrong place")
				}
			}
			if h.next() != want || len(h.slots) != len(model) {
				t.Fatalf("next is %d, want %d", h.next(), want)
			}
		}
	})
}

func TestHeapAndIndexGiveMemoryBack(t *testing.T) {
	t.Parallel()
	const n = 100_000
	h := heap[int]{moved: func(int, int32) {}}
	var x index[string, int]
	var q queue[int]
	for i := range n {
		h.push(tick(rand.IntN(n)), uint64(i), i)
		x.put(fmt.Sprint(i), i)
		q.push(i)
	}
	for i := range n - 10 {
		h.removeAt(0)
		x.remove(fmt.Sprint(i))
		q.pop()
	}
	if len(h.slots) != 10 || cap(h.slots) > 4096 {
		t.Errorf("heap: %d slots of %d", len(h.slots), cap(h.slots))
	}
	if x.len() != 10 || x.peak > 4096 {
		t.Errorf("index: %d, sized for %d", x.len(), x.peak)
	}
	for i := n - 10; i < n; i++ {
		if v, ok := x.get(fmt.Sprint(i)); !ok || v != i {
			t.Errorf("index lost %d", i)
		}
		if got := *q.head(); got != i {
			t.Errorf("queue: got %d, want %d", got, i)
		}
		q.pop()
	}
	if !q.empty() || q.vs != nil {
		t.Error("the queue keeps memory")
	}
}
