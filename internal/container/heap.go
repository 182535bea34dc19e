package container

import "math"

// Heap is a 4-ary min-heap with its keys inline, which tells each member its index so that it can be removed.
//
// container/heap calls an interface for each comparison and each swap: BenchmarkHeap compares the two.
type Heap[K ~int64, T any] struct {
	slots []slot[K, T]
	moved func(v T, at int32)
}

type slot[K ~int64, T any] struct {
	key K
	tie uint64
	v   T
}

func (s *slot[K, T]) before(o *slot[K, T]) bool {
	return s.key < o.key || s.key == o.key && s.tie < o.tie
}

// Nowhere is the index of what is in no heap.
const Nowhere int32 = -1

// NewHeap returns a heap that calls moved with each new index of a member, and with Nowhere when it is removed.
func NewHeap[K ~int64, T any](moved func(v T, at int32)) Heap[K, T] { return Heap[K, T]{moved: moved} }

// Len is how many members there are.
func (h *Heap[K, T]) Len() int { return len(h.slots) }

// Next returns the smallest key, or the largest that there can be if the heap is empty.
func (h *Heap[K, T]) Next() K {
	if len(h.slots) == 0 {
		return math.MaxInt64
	}
	return h.slots[0].key
}

// Top returns the member with the smallest key. The heap is not empty.
func (h *Heap[K, T]) Top() T { return h.slots[0].v }

// At returns the member with an index, and its key.
func (h *Heap[K, T]) At(at int32) (T, K) { return h.slots[at].v, h.slots[at].key }

// Push adds a member. Of equal keys the lower tie comes first.
func (h *Heap[K, T]) Push(key K, tie uint64, v T) {
	h.slots = append(h.slots, slot[K, T]{key, tie, v})
	h.up(len(h.slots) - 1)
}

// RemoveAt removes the member with an index.
func (h *Heap[K, T]) RemoveAt(at int32) {
	last := len(h.slots) - 1
	gone, moved := h.slots[at].v, h.slots[last]
	h.slots[last] = slot[K, T]{}
	h.slots = h.slots[:last]
	h.moved(gone, Nowhere)
	if int(at) < last {
		h.slots[at] = moved
		h.up(h.down(int(at)))
	}
	h.shrink()
}

func (h *Heap[K, T]) up(i int) {
	s := h.slots[i]
	for i > 0 {
		parent := (i - 1) / 4
		if !s.before(&h.slots[parent]) {
			break
		}
		h.set(i, h.slots[parent])
		i = parent
	}
	h.set(i, s)
}

func (h *Heap[K, T]) down(i int) int {
	s := h.slots[i]
	for {
		first := 4*i + 1
		if first >= len(h.slots) {
			break
		}
		least := first
		for c := first + 1; c < min(first+4, len(h.slots)); c++ {
			if h.slots[c].before(&h.slots[least]) {
				least = c
			}
		}
		if !h.slots[least].before(&s) {
			break
		}
		h.set(i, h.slots[least])
		i = least
	}
	h.slots[i] = s
	return i
}

func (h *Heap[K, T]) set(i int, s slot[K, T]) {
	h.slots[i] = s
	h.moved(s.v, int32(i))
}

// shrink gives memory back after a peak.
func (h *Heap[K, T]) shrink() {
	if c := cap(h.slots); c > 1024 && len(h.slots) < c/8 {
		h.slots = append(make([]slot[K, T], 0, c/4), h.slots...)
	}
}
