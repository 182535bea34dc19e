package scheduler

// chain holds the items of one key that keep a place in it, in their order. One of them stands for the chain in a lane,
// and only while the key is free: none of them held, its head ready.
type chain[T any] struct {
	key string
	list[T]
	held    int
	offered *Node[T] // the one that stands for the chain
}

// Name is the key, for the table of chains.
func (c *chain[T]) Name() string { return c.key }

// link puts n into the chain at its place. Mostly that is the end, or near the head.
func (c *chain[T]) link(n *Node[T]) {
	prev := c.tail
	if prev != nil && prev.Place > n.Place {
		prev = nil
		for x := c.head; x.Place < n.Place; x = x.links[inChain].next {
			prev = x
		}
	}
	n.chain = c
	c.insert(inChain, prev, n)
}

func (c *chain[T]) unlink(n *Node[T]) {
	c.remove(inChain, n)
	n.chain = nil
}

// candidate returns the item with which the next run begins, or nil while the key is not free.
func (c *chain[T]) candidate() *Node[T] {
	if c.held > 0 || c.head == nil || !c.head.ready() {
		return nil
	}
	return c.head
}
