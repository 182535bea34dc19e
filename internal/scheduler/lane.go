package scheduler

import "github.com/ferrymq/ferry/internal/container"

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
		l.fresh.push(n)
		return
	}
	n.state = returned
	l.returned.Push(int64(n.Place), 0, n)
}

func (l *lane[T]) remove(n *Node[T]) {
	if n.state == fresh {
		l.fresh.remove(n)
	} else {
		l.returned.RemoveAt(n.index - 1)
	}
}

// list is a list of nodes.
type list[T any] struct{ head, tail *Node[T] }

func (l *list[T]) push(n *Node[T]) {
	n.prev = l.tail
	if l.tail != nil {
		l.tail.next = n
	} else {
		l.head = n
	}
	l.tail = n
}

func (l *list[T]) pushFront(n *Node[T]) {
	n.next = l.head
	if l.head != nil {
		l.head.prev = n
	} else {
		l.tail = n
	}
	l.head = n
}

func (l *list[T]) remove(n *Node[T]) {
	if n.prev != nil {
		n.prev.next = n.next
	} else {
		l.head = n.next
	}
	if n.next != nil {
		n.next.prev = n.prev
	} else {
		l.tail = n.prev
	}
	n.prev, n.next = nil, nil
}
