package container

import "iter"

// Slots is a hash table with linear probing, of a size that its owner decides on: a power of two, more than what is in
// it. A hash of zero means that a slot is empty.
//
// By the engine's BenchmarkColdIDs the place of a message by the hash of its id takes 17 bytes, and 38 in a Go map.
type Slots[T any] struct {
	hashes  []uint32
	members []T
	used    int
}

// NewSlots returns n empty slots.
func NewSlots[T any](n int) Slots[T] {
	return Slots[T]{hashes: make([]uint32, n), members: make([]T, n)}
}

// Len is how many members there are.
func (s *Slots[T]) Len() int { return s.used }

// Size is how many slots there are.
func (s *Slots[T]) Size() int { return len(s.hashes) }

// At returns the member in a slot.
func (s *Slots[T]) At(i int) T { return s.members[i] }

// Find returns the slot of the first member with this hash that is the one, or -1.
func (s *Slots[T]) Find(h uint32, is func(v T) bool) int {
	if s.used == 0 {
		return -1
	}
	mask := len(s.hashes) - 1
	for i := int(h) & mask; s.hashes[i] != 0; i = (i + 1) & mask {
		if s.hashes[i] == h && is(s.members[i]) {
			return i
		}
	}
	return -1
}

// Add puts a member into a free slot. Its hash is not zero.
func (s *Slots[T]) Add(h uint32, v T) {
	mask := len(s.hashes) - 1
	i := int(h) & mask
	for s.hashes[i] != 0 {
		i = (i + 1) & mask
	}
	s.hashes[i], s.members[i] = h, v
	s.used++
}

// Clear empties a slot, and moves up what was put behind it because it was taken.
func (s *Slots[T]) Clear(i int) {
	mask := len(s.hashes) - 1
	for j := (i + 1) & mask; s.hashes[j] != 0; j = (j + 1) & mask {
		if home := int(s.hashes[j]) & mask; (j-home)&mask >= (j-i)&mask {
			s.hashes[i], s.members[i] = s.hashes[j], s.members[j]
			i = j
		}
	}
	var none T
	s.hashes[i], s.members[i] = 0, none
	s.used--
}

// All are the members with their hashes.
func (s *Slots[T]) All() iter.Seq2[uint32, T] {
	return func(yield func(h uint32, v T) bool) {
		for i, h := range s.hashes {
			if h != 0 && !yield(h, s.members[i]) {
				return
			}
		}
	}
}

// Resize moves all members into n slots.
func (s *Slots[T]) Resize(n int) {
	moved := NewSlots[T](n)
	for h, v := range s.All() {
		moved.Add(h, v)
	}
	*s = moved
}
