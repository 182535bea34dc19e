package scheduler

import "iter"

// Holder is who claims items: a member of a group. Its leases all last equally long, so that the one that was begun or
// renewed first ends first.
type Holder[T any] struct {
	steps  [Lanes]uint64 // how far one claim moves each lane
	strict bool
	items  list[T]
	count  int
}

// NewHolder returns a holder that claims from lanes by weight, or always from the most urgent one that has something.
// Every weight is at least 1.
func NewHolder[T any](weights [Lanes]int, strictPriority bool) Holder[T] {
	h := Holder[T]{strict: strictPriority}
	for lane, w := range weights {
		h.steps[lane] = strideScale / uint64(w)
	}
	return h
}

// Len is how many items it has.
func (h *Holder[T]) Len() int { return h.count }

// First returns the item whose lease ends first, or nil.
func (h *Holder[T]) First() *T {
	if h.items.head == nil {
		return nil
	}
	return h.items.head.item()
}

// All are the items it has, in the order in which their leases end. Who is given one may end its lease.
func (h *Holder[T]) All() iter.Seq[*T] { return from(h.items.head, inLane) }

// Renew makes a lease the one that ends last.
func (h *Holder[T]) Renew(n *Node[T]) {
	h.items.remove(inLane, n)
	h.items.insert(inLane, h.items.tail, n)
}

// Forfeit makes a lease the one that ends first.
func (h *Holder[T]) Forfeit(n *Node[T]) {
	h.items.remove(inLane, n)
	h.items.insert(inLane, nil, n)
}

func (h *Holder[T]) add(n *Node[T]) {
	n.state = held
	h.items.insert(inLane, h.items.tail, n)
	h.count++
}

func (h *Holder[T]) remove(n *Node[T]) {
	h.items.remove(inLane, n)
	h.count--
}
