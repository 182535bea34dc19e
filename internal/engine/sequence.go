package engine

import (
	"cmp"
	"iter"
	"slices"
)

const segmentSize = 512

// sequence maps ever growing numbers to values, in segments that are freed when they are empty. It needs 8 bytes for
// each value and has them in order; a Go map needs more than twice as much, and sorting. BenchmarkBacklog counts it.
type sequence[T any] struct {
	segments []*segment[T] // in order of their numbers
	count    int
}

type segment[T any] struct {
	number uint64 // of its first member, divided by segmentSize
	live   int
	slots  [segmentSize]*T
}

// find returns the index of the first segment that has this number or a higher one.
func (q *sequence[T]) find(number uint64) int {
	if len(q.segments) == 0 || number <= q.segments[0].number {
		return 0
	}
	// Segments rarely have gaps between them, so the index is nearly always the distance from the first.
	if d := number - q.segments[0].number; d < uint64(len(q.segments)) && q.segments[d].number == number {
		return int(d)
	}
	i, _ := slices.BinarySearchFunc(q.segments, number,
		func(s *segment[T], n uint64) int { return cmp.Compare(s.number, n) })
	return i
}

func (q *sequence[T]) get(at uint64) *T {
	i := q.find(at / segmentSize)
	if i == len(q.segments) || q.segments[i].number != at/segmentSize {
		return nil
	}
	return q.segments[i].slots[at%segmentSize]
}

// put stores v at a number that is not used yet, usually the highest so far.
func (q *sequence[T]) put(at uint64, v *T) {
	i := q.find(at / segmentSize)
	if i == len(q.segments) || q.segments[i].number != at/segmentSize {
		i = q.addSegment(i, at/segmentSize)
	}
	q.segments[i].slots[at%segmentSize] = v
	q.segments[i].live++
	q.count++
}

// addSegment inserts a segment at index i, and returns its index. The last one may be empty; then it is used again.
func (q *sequence[T]) addSegment(i int, number uint64) int {
	if i > 0 && i == len(q.segments) && q.segments[i-1].live == 0 {
		q.segments[i-1].number = number
		return i - 1
	}
	q.segments = slices.Insert(q.segments, i, &segment[T]{number: number})
	return i
}

func (q *sequence[T]) remove(at uint64) {
	i := q.find(at / segmentSize)
	if i == len(q.segments) || q.segments[i].number != at/segmentSize || q.segments[i].slots[at%segmentSize] == nil {
		return
	}
	s := q.segments[i]
	s.slots[at%segmentSize] = nil
	s.live--
	q.count--
	switch {
	case s.live > 0 || i == len(q.segments)-1: // the last one is kept: a topic that is often empty fills it again
	case i == 0:
		q.segments[0] = nil
		q.segments = q.segments[1:]
	default:
		q.segments = slices.Delete(q.segments, i, i+1)
	}
}

// first returns a number that is not higher than any in use.
func (q *sequence[T]) first() uint64 {
	if len(q.segments) == 0 {
		return 0
	}
	return q.segments[0].number * segmentSize
}

// after are the values whose numbers are higher than at, in order.
func (q *sequence[T]) after(at uint64) iter.Seq2[uint64, *T] {
	return func(yield func(at uint64, v *T) bool) {
		first := at + 1
		for i := q.find(first / segmentSize); i < len(q.segments); i++ {
			s := q.segments[i]
			from := uint64(0)
			if s.number == first/segmentSize {
				from = first % segmentSize
			}
			for j := from; j < segmentSize; j++ {
				if v := s.slots[j]; v != nil && !yield(s.number*segmentSize+j, v) {
					return
				}
			}
		}
	}
}

// all returns every value in order. It is for changes that concern a whole topic.
func (q *sequence[T]) all() []*T {
	vs := make([]*T, 0, q.count)
	for _, v := range q.after(0) {
		vs = append(vs, v)
	}
	return vs
}

// popFirst drops the first of a list that is a queue, and what only that held; with the last one the list itself.
func popFirst[T any](vs []T) []T {
	clear(vs[:1])
	if len(vs) == 1 {
		return nil
	}
	return vs[1:]
}
