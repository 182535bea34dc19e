package worker

import "time"

// Messages go back to the broker when a handler failed, and when they cannot start here after all. While messages of a
// key are on their way back nothing of that key may start: what a fetch brings meanwhile was claimed before the broker
// took them back, and is void; or after that, and then it begins with the first of them, because a key comes in order.

// doubt is what is not known about the queue of a lane.
type doubt struct {
	returning int    // settlements under way that give messages of the key back
	is        bool   // the first of them has not come again: what is in the queue may be void
	awaited   string // its id
	accepted  bool   // something in doubt was given back, and was ours
	ghost     bool   // the lane is in lanes.ghosts
}

// giveBackAll returns everything that has not started.
func (c *consumer) giveBackAll() {
	c.giveBackReady()
	for _, l := range c.lanes.keys {
		if l.queue.n > 0 {
			c.giveBackQueue(l, l.queue.head.d.ID)
		}
	}
}

// giveBackReady returns what could start, with its followers. What waits behind a running message stays: nobody else
// could run it.
func (c *consumer) giveBackReady() {
	for r := c.lanes.ready.pop(); r != nil; r = c.lanes.ready.pop() {
		c.giveBack(r)
	}
}

// giveBack returns a message that was ready, with its followers, uncounted. It is in no list any more.
func (c *consumer) giveBack(r *run) {
	if r.d.Deliveries >= suspectDeliveries {
		c.timid++
	}
	l := r.lane
	if l != nil {
		l.busy = false
		c.takeBack(l, r)
	}
	c.release(r)
	if l != nil {
		c.giveBackQueue(l, r.d.ID) // in relaxed order, or if it is lost
	}
}

// giveBackQueue returns what waits behind the first message of a key. The message with the id first comes again before
// them, or is the first of them.
func (c *consumer) giveBackQueue(l *lane, first string) {
	if !l.doubt.is {
		l.doubt.is, l.doubt.awaited = true, first
	}
	for r := c.lanes.shift(l); r != nil; r = c.lanes.shift(l) {
		l.doubt.returning++
		r.returns = true
		c.release(r)
	}
}

// takeBack notes that settling first gives it back to the broker, and in strict order its followers with it. This is
// done before it is settled, so that none of them starts.
func (c *consumer) takeBack(l *lane, first *run) {
	if c.strict() && !first.lost { // of a lost one nobody knows
		c.lanes.forget(l)
	}
	l.doubt.is, l.doubt.awaited = true, first.d.ID
	l.doubt.returning++
	first.returns = true
}

// takenBack is told that the settlement of r, which gave back messages of its key, has been answered. Ours says that r
// was, as far as is known.
func (c *consumer) takenBack(r *run, ours bool, now time.Duration) {
	l := r.lane
	l.doubt.returning--
	if r.inDoubt && ours && l.doubt.is && !l.doubt.accepted {
		// So the one that was awaited is done elsewhere, and this is the first now.
		l.doubt.accepted, l.doubt.awaited = true, r.d.ID
		l.resolve()
	}
	c.advance(l, now)
}

// resolve ends the doubt about l if the awaited message is the first in its queue.
func (l *lane) resolve() {
	if l.doubt.is && l.queue.head != nil && l.queue.head.d.ID == l.doubt.awaited {
		l.doubt.is, l.doubt.accepted = false, false
	}
}

// returnDoubtful gives back a queue in doubt: if it is void nothing happens, and otherwise it comes again.
func (c *consumer) returnDoubtful(l *lane) {
	l.doubt.accepted = false
	for r := l.queue.head; r != nil; r = r.next {
		r.inDoubt = true
	}
	c.giveBackQueue(l, l.doubt.awaited)
	c.settleSoon()
}

// haunt keeps an empty lane until the fetch under way has brought what it claimed before the broker took messages back.
func (c *consumer) haunt(l *lane) {
	if !l.doubt.ghost {
		l.doubt.ghost = true
		c.lanes.ghosts = append(c.lanes.ghosts, l)
	}
}

// layGhosts frees the lanes that were kept for a fetch that has ended.
func (c *consumer) layGhosts(now time.Duration) {
	ghosts := c.lanes.ghosts
	c.lanes.ghosts = nil
	for _, l := range ghosts {
		l.doubt.ghost = false
		c.advance(l, now)
	}
}
