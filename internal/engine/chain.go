package engine

// chain holds the messages of one key that a group has not settled, in their order. One item stands for the chain in
// a lane, and only while the key is free: no message of it in flight, its head not waiting.
type chain struct {
	key        string
	head, tail *item
	held       int   // in flight
	offered    *item // the one that stands for the chain
}

// join puts a keyed item into its chain, at its place.
func (g *group) join(it *item) {
	key := it.content().key
	c, ok := g.chains.get(key)
	if !ok {
		c = &chain{key: key}
		g.chains.put(c)
	}
	it.chain = c
	prev := c.tail
	if prev != nil && prev.place > it.place {
		prev = nil
		for n := c.head; n.place < it.place; n = n.keyNext {
			prev = n
		}
	}
	c.insert(it, prev)
}

// insert links it behind prev; nil means at the head.
func (c *chain) insert(it, prev *item) {
	next := c.head
	if prev != nil {
		next, prev.keyNext = prev.keyNext, it
	} else {
		c.head = it
	}
	it.keyPrev, it.keyNext = prev, next
	if next != nil {
		next.keyPrev = it
	} else {
		c.tail = it
	}
}

// leave takes it out of its chain. The caller settles the chain afterwards.
func (g *group) leave(it *item) {
	c := it.chain
	if c.offered == it {
		g.withdraw(it)
		c.offered = nil
	}
	if it.keyPrev != nil {
		it.keyPrev.keyNext = it.keyNext
	} else {
		c.head = it.keyNext
	}
	if it.keyNext != nil {
		it.keyNext.keyPrev = it.keyPrev
	} else {
		c.tail = it.keyPrev
	}
	it.keyPrev, it.keyNext, it.chain = nil, nil, nil
}

// arrange makes the lanes agree with the chain after any change of it, and frees an empty one.
func (g *group) arrange(c *chain) {
	it := c.candidate()
	if it == c.offered && it != nil {
		return
	}
	if c.offered != nil {
		g.withdraw(c.offered)
	}
	c.offered = it
	if it != nil {
		g.offer(it)
		return
	}
	if c.head == nil {
		if current, _ := g.chains.get(c.key); current == c {
			g.chains.remove(c)
		}
	}
}

// candidate returns the item with which the next run begins, if the key is free.
func (c *chain) candidate() *item {
	if c.held > 0 || c.head == nil || c.head.state != ready { // only strict order leaves one that waits, to block the key
		return nil
	}
	return c.head
}
