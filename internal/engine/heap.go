package engine

// heap is a 4-ary min-heap with its keys inline, which tells each member its place so that it can be removed.
type heap[T any] struct {
	slots []slot[T]
	moved func(v T, at int32)
}

type slot[T any] struct {
	key tick
	tie uint64
	v   T
}

func (s *slot[T]) before(o *slot[T]) bool {
	return s.key < o.key || s.key == o.key && s.tie < o.tie
}

const nowhere int32 = -1

func (h *heap[T]) empty() bool { return len(h.slots) == 0 }

// next returns the smallest key, or never.
func (h *heap[T]) next() tick {
	if len(h.slots) == 0 {
		return never
	}
	return h.slots[0].key
}

func (h *heap[T]) top() T { return h.slots[0].v }

func (h *heap[T]) push(key tick, tie uint64, v T) {
	h.slots = append(h.slots, slot[T]{key, tie, v})
	h.up(len(h.slots) - 1)
}

func (h *heap[T]) removeAt(at int32) {
	last := len(h.slots) - 1
	gone, moved := h.slots[at].v, h.slots[last]
	h.slots[last] = slot[T]{}
	h.slots = h.slots[:last]
	h.moved(gone, nowhere)
	if int(at) < last {
		h.slots[at] = moved
		h.up(h.down(int(at)))
	}
	h.shrink()
}

func (h *heap[T]) up(i int) {
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

func (h *heap[T]) down(i int) int {
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

func (h *heap[T]) set(i int, s slot[T]) {
	h.slots[i] = s
	h.moved(s.v, int32(i))
}

// shrink gives memory back after a peak.
func (h *heap[T]) shrink() {
	if c := cap(h.slots); c > 1024 && len(h.slots) < c/8 {
		h.slots = append(make([]slot[T], 0, c/4), h.slots...)
	}
}
