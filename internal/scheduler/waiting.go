package scheduler

import "github.com/ferrymq/ferry/internal/container"

// Waiting holds items until a time, or whatever else the caller counts by. An item is in one at most, and not offered
// or held meanwhile; one that blocks its key may be in one. Several queues may share it.
type Waiting[T any] struct {
	heap container.Heap[int64, *Node[T]]
}

// NewWaiting returns one that is empty.
func NewWaiting[T any]() Waiting[T] {
	return Waiting[T]{container.NewHeap[int64]((*Node[T]).moved)}
}

// Len is how many items wait.
func (w *Waiting[T]) Len() int { return w.heap.Len() }

// Next is until when the first one waits, or the largest number if none does.
func (w *Waiting[T]) Next() int64 { return w.heap.Next() }

// First returns the item that waits for the shortest time. There is one.
func (w *Waiting[T]) First() *T { return w.heap.Top().item() }

// Add makes an item wait. Of those that wait for the same time the one with the lowest place is first.
func (w *Waiting[T]) Add(n *Node[T], until int64) { w.heap.Push(until, n.Place, n) }

// Remove ends the wait of an item that is in it.
func (w *Waiting[T]) Remove(n *Node[T]) { w.heap.RemoveAt(n.index - 1) }

// Until returns until when an item waits, and whether it does so here.
func (w *Waiting[T]) Until(n *Node[T]) (int64, bool) {
	if at := int(n.index) - 1; !n.Waits() || at >= w.heap.Len() {
		return 0, false
	}
	found, until := w.heap.At(n.index - 1)
	return until, found == n
}
