package scheduler

import (
	"iter"

	"github.com/ferrymq/ferry/internal/container"
)

// Queue is what a group has not settled.
type Queue[T any] struct {
	lanes   [Lanes]lane[T]
	stride  stride
	chains  container.Table[*chain[T]]
	spare   *chain[T] // one that is empty: most keys come again, or another one does
	offered func()
}

// New returns an empty queue, which calls offered whenever one more item can be claimed. T embeds its Node first.
func New[T any](offered func()) Queue[T] {
	checkItem[T]()
	q := Queue[T]{offered: offered, chains: container.NewTable[*chain[T]]()}
	for i := range q.lanes {
		q.lanes[i].returned = container.NewHeap[int64]((*Node[T]).moved)
	}
	return q
}

// Empty reports whether nothing can be claimed.
func (q *Queue[T]) Empty() bool {
	for i := range q.lanes {
		if !q.lanes[i].empty() {
			return false
		}
	}
	return true
}

// Keys is how many keys have items.
func (q *Queue[T]) Keys() int { return q.chains.Len() }

// Head returns the first item of a key, or nil.
func (q *Queue[T]) Head(key string) *T {
	c, ok := q.chains.Get(key)
	if !ok {
		return nil
	}
	return c.head.item()
}

// Members are the items that keep a place in a key, in their order.
func (q *Queue[T]) Members(key string) iter.Seq[*T] {
	c, ok := q.chains.Get(key)
	if !ok {
		return from[T](nil, inChain)
	}
	return from(c.head, inChain)
}

// Ready lets an item be claimed when its turn comes, at its place of a lane. The item is not held.
func (q *Queue[T]) Ready(n *Node[T], key string, lane int) {
	q.withdraw(n)
	n.lane = uint8(lane)
	if key == "" {
		q.offer(n)
		return
	}
	q.join(n, key)
	n.state = behind
	q.arrange(n.chain)
}

// Block has an item keep its place in its key, so that neither it nor what is behind it can be claimed. The item has a
// key, and is not held.
func (q *Queue[T]) Block(n *Node[T], key string) {
	q.withdraw(n)
	q.join(n, key)
	n.state = blocking
	q.arrange(n.chain)
}

// Remove takes an item out of the queue. The item is not held; one that is out stays so.
func (q *Queue[T]) Remove(n *Node[T]) {
	q.withdraw(n)
	n.state = out
	if c := n.chain; c != nil {
		c.unlink(n)
		q.arrange(c)
	}
}

// Next returns the item that h would claim next, or nil. A lane of which more is coming has its turn even if nothing of
// it is there yet: then there is no next item.
func (q *Queue[T]) Next(h *Holder[T], coming int) *T {
	best := NoLane
	for l := Lanes - 1; l >= 0; l-- {
		if q.lanes[l].empty() && l != coming {
			continue
		}
		if best == NoLane || q.stride.pass[l] < q.stride.pass[best] {
			best = l
		}
		if h.strict {
			break
		}
	}
	if best == NoLane || q.lanes[best].empty() {
		return nil
	}
	return q.lanes[best].front().item()
}

// Take gives h the item that Next returned and, of its key, those that follow it: a run of at most most, until one is
// not ready or does not fit. It appends them to run.
func (q *Queue[T]) Take(h *Holder[T], n *Node[T], most int, fits func(*T) bool, run []*T) []*T {
	q.withdraw(n)
	lane, before := n.lane, len(run)
	c := n.chain
	for {
		h.add(n)
		run = append(run, n.item())
		if c == nil {
			break
		}
		c.held++
		if n = n.links[inChain].next; len(run)-before >= most || n == nil || !n.ready() || !fits(n.item()) {
			break
		}
	}
	q.stride.charge(lane, len(run)-before, &h.steps)
	return run
}

// End ends the lease of an item that h has. One with a key blocks it until the caller has said what becomes of it, by
// Ready, Block or Remove: until then nobody gets what is behind it.
func (q *Queue[T]) End(h *Holder[T], n *Node[T]) {
	h.remove(n)
	n.state = out
	if c := n.chain; c != nil {
		c.held--
		n.state = blocking
	}
}

// join puts n into the chain of its key, unless it is there.
func (q *Queue[T]) join(n *Node[T], key string) {
	if n.chain != nil {
		return
	}
	c, ok := q.chains.Get(key)
	if !ok {
		if c = q.spare; c == nil {
			c = &chain[T]{}
		}
		c.key, q.spare = key, nil
		q.chains.Put(c)
	}
	c.link(n)
}

// arrange makes the lanes agree with a chain after any change of it, and frees an empty one.
func (q *Queue[T]) arrange(c *chain[T]) {
	if n := c.candidate(); n != c.offered {
		if c.offered != nil {
			q.withdraw(c.offered)
		}
		if c.offered = n; n != nil {
			q.offer(n)
		}
	}
	if c.head == nil {
		q.chains.Remove(c)
		c.key, q.spare = "", c
	}
}

// offer puts n where every holder can claim it.
func (q *Queue[T]) offer(n *Node[T]) {
	q.stride.enter(n.lane)
	q.lanes[n.lane].add(n)
	q.offered()
}

// withdraw takes n out of its lane if it is in one.
func (q *Queue[T]) withdraw(n *Node[T]) {
	if !n.Offered() {
		return
	}
	q.lanes[n.lane].remove(n)
	n.state = out
	if c := n.chain; c != nil {
		c.offered, n.state = nil, behind
	}
}
