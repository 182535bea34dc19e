package scheduler

import (
	"iter"

	"github.com/ferrymq/ferry/internal/container"
)

// Lanes is how many lanes there are; the last one is the most urgent.
const Lanes = 4

// NoLane is no lane: see Queue.Next.
const NoLane = -1

// lane holds what can be claimed at one priority. Of a key only one item is ever in a lane.
//
// New items arrive in order, so a list is enough for them. Those that return to their old place, and the followers of
// a key, arrive out of order; they are few, and in a heap.
type lane[T any] struct {
	fresh    list[T]
	returned container.Heap[int64, *Node[T]]
}

func (l *lane[T]) empty() bool { return l.fresh.head == nil && l.returned.Len() == 0 }

// front returns the node with the lowest place, or nil.
func (l *lane[T]) front() *Node[T] {
	n := l.fresh.head
	if l.returned.Len() > 0 {
		if r := l.returned.Top(); n == nil || r.Place < n.Place {
			return r
		}
	}
	return n
}

func (l *lane[T]) add(n *Node[T]) {
	if tail := l.fresh.tail; tail == nil || tail.Place < n.Place {
		n.state = fresh
		l.fresh.insert(inLane, tail, n)
		return
	}
	n.state = returned
	l.returned.Push(int64(n.Place), 0, n)
}

func (l *lane[T]) remove(n *Node[T]) {
	if n.state == fresh {
		l.fresh.remove(inLane, n)
	} else {
		l.returned.RemoveAt(n.index - 1)
	}
}

// list is a list of nodes. A node may be in two.
type list[T any] struct{ head, tail *Node[T] }

type links[T any] struct{ prev, next *Node[T] }

// In which list a node is.
const (
	inLane = iota // or held
	inChain
)

// insert puts n behind another node, or before all if that is nil.
func (l *list[T]) insert(in int, prev, n *Node[T]) {
	next := l.head
	if prev != nil {
		next, prev.links[in].next = prev.links[in].next, n
	} else {
		l.head = n
	}
	if next != nil {
		next.links[in].prev = n
	} else {
		l.tail = n
	}
	n.links[in] = links[T]{prev, next}
}

func (l *list[T]) remove(in int, n *Node[T]) {
	prev, next := n.links[in].prev, n.links[in].next
	if prev != nil {
		prev.links[in].next = next
	} else {
		l.head = next
	}
	if next != nil {
		next.links[in].prev = prev
	} else {
		l.tail = prev
	}
	n.links[in] = links[T]{}
}

// from are the items of a list from n on. Who is given one may take it out of the list.
func from[T any](n *Node[T], in int) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for x := n; x != nil; {
			next := x.links[in].next
			if !yield(x.item()) {
				return
			}
			x = next
		}
	}
}
