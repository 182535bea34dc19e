package container

import (
	stdheap "container/heap"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestHeap compares a heap with sorting, over random pushes and removals from the middle.
func TestHeap(t *testing.T) {
	t.Parallel()
	type member struct {
		key int64
		at  int32
	}
	rapid.Check(t, func(t *rapid.T) {
		h := NewHeap[int64](func(m *member, at int32) { m.at = at })
		var model []*member
		for i := range rapid.IntRange(1, 300).Draw(t, "steps") {
			if len(model) > 0 && rapid.IntRange(0, 2).Draw(t, "remove") == 0 {
				n := rapid.IntRange(0, len(model)-1).Draw(t, "which")
				h.RemoveAt(model[n].at)
				if model[n].at != Nowhere {
					t.Fatal("a removed member believes to be in the heap")
				}
				model = slices.Delete(model, n, n+1)
			} else {
				m := &member{key: int64(rapid.IntRange(0, 50).Draw(t, "key"))}
				model = append(model, m)
				h.Push(m.key, uint64(i), m)
			}
			want := int64(math.MaxInt64)
			for _, m := range model {
				want = min(want, m.key)
				if v, key := h.At(m.at); v != m || key != m.key {
					t.Fatal("a member has the wrong index")
				}
			}
			if h.Next() != want || h.Len() != len(model) {
				t.Fatalf("next is %d, want %d", h.Next(), want)
			}
		}
	})
}

func TestHeapGivesMemoryBack(t *testing.T) {
	t.Parallel()
	const n = 100_000
	h := NewHeap[int64](func(int, int32) {})
	for i := range n {
		h.Push(rand.Int64N(n), uint64(i), i)
	}
	for range n - 10 {
		h.RemoveAt(0)
	}
	if h.Len() != 10 || cap(h.slots) > 4096 {
		t.Errorf("%d slots of %d", h.Len(), cap(h.slots))
	}
}

// BenchmarkHeap pushes a member into a heap of a million and takes the smallest out, here and in container/heap.
func BenchmarkHeap(b *testing.B) {
	const size = 1_000_000
	b.Run("this", func(b *testing.B) {
		h := NewHeap[int64](func(int, int32) {})
		for i := range size {
			h.Push(rand.Int64(), 0, i)
		}
		for b.Loop() {
			h.Push(rand.Int64(), 0, 0)
			h.RemoveAt(0)
		}
	})
	b.Run("container/heap", func(b *testing.B) {
		var h plainHeap
		for range size {
			stdheap.Push(&h, rand.Int64())
		}
		for b.Loop() {
			stdheap.Push(&h, rand.Int64())
			stdheap.Pop(&h)
		}
	})
}

type plainHeap []int64

func (h plainHeap) Len() int           { return len(h) }
func (h plainHeap) Less(i, j int) bool { return h[i] < h[j] }
func (h plainHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *plainHeap) Push(x any)        { *h = append(*h, x.(int64)) }
func (h *plainHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}
