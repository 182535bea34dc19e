package worker

import "time"

// lanes hold what a consumer has fetched and not started, and decide what may start: any message without a key, and the
// first of each key whose predecessor is done. They are guarded by engine.mu.
type lanes struct {
	ready  runList // may start, in order of arrival
	keys   map[string]*lane
	queued int   // messages behind the first of their key
	spare  *lane // free lanes, to use again
}

// lane is one key of which something is held. It is freed when nothing is.
type lane struct {
	key   string
	queue runList // behind the first
	busy  bool    // its first message is ready or running

	// While messages of the key are on their way back to the broker, nothing of it may start: what a fetch brings was
	// claimed before the broker took them back, and is void, or after that, and then begins with the first of them.
	returning int    // settlements under way that give messages back
	awaited   string // id of the first of them
	doubt     bool   // it has not come again: what is in the queue may be void

	free *lane
}

// runList is a queue linked through run.next.
type runList struct {
	head, tail *run
	n          int
}

func (l *runList) push(r *run) {
	r.next = nil
	if l.tail == nil {
		l.head = r
	} else {
		l.tail.next = r
	}
	l.tail = r
	l.n++
}

func (l *runList) pop() *run {
	r := l.head
	if r == nil {
		return nil
	}
	l.head = r.next
	if l.head == nil {
		l.tail = nil
	}
	r.next = nil
	l.n--
	return r
}

// push takes in a delivery, in order of arrival.
func (ls *lanes) push(r *run) {
	key := r.d.Key
	if key == "" {
		ls.ready.push(r)
		return
	}
	l := ls.keys[key]
	if l == nil {
		l = ls.open(key)
		l.busy = true
		r.lane = l
		ls.ready.push(r)
		return
	}
	r.lane = l
	if l.doubt && r.d.ID == l.awaited {
		ls.forget(l) // claimed before it was given back
		l.doubt = false
	}
	l.queue.push(r)
	ls.queued++
}

func (ls *lanes) open(key string) *lane {
	l := ls.spare
	if l == nil {
		l = new(lane)
	} else {
		ls.spare = l.free
	}
	*l = lane{key: key}
	if ls.keys == nil {
		ls.keys = make(map[string]*lane)
	}
	ls.keys[key] = l
	return l
}

func (ls *lanes) close(l *lane) {
	delete(ls.keys, l.key)
	l.free, l.key = ls.spare, ""
	ls.spare = l
}

// shift takes the next message out of the queue of l.
func (ls *lanes) shift(l *lane) *run {
	r := l.queue.pop()
	if r != nil {
		ls.queued--
	}
	return r
}

// forget drops the queue of l: the broker has taken it back.
func (ls *lanes) forget(l *lane) {
	for r := ls.shift(l); r != nil; r = ls.shift(l) {
		r.leave()
	}
}

// advance lets the next message of l start if it may, and frees l if there is none. It reports whether the queue is in
// doubt and has to be given back first.
func (ls *lanes) advance(l *lane, now time.Duration) (doubt bool) {
	switch {
	case l.busy || l.returning > 0:
	case l.queue.n == 0:
		ls.close(l)
	case l.doubt:
		return true
	default:
		r := ls.shift(l)
		l.busy = true
		r.arrived = now
		ls.ready.push(r)
	}
	return false
}

// giveBackAll returns everything that has not started.
func (c *consumer) giveBackAll() {
	c.giveBackReady()
	for _, l := range c.lanes.keys {
		c.giveBackQueue(l)
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
	if r.lane == nil {
		c.release(r)
		return
	}
	l := r.lane
	l.busy = false
	c.takeBack(l, r)
	c.release(r)
	if !c.strict() {
		c.giveBackQueue(l)
	}
}

// giveBackQueue returns what waits behind the first message of a key, which stays.
func (c *consumer) giveBackQueue(l *lane) {
	for r := c.lanes.shift(l); r != nil; r = c.lanes.shift(l) {
		if !l.doubt {
			l.awaited, l.doubt = r.d.ID, true
		}
		l.returning++
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
	l.awaited, l.doubt = first.d.ID, true
	l.returning++
	first.returns = true
}

// takenBack is told that a settlement which gave back messages of l has been answered.
func (c *consumer) takenBack(l *lane, now time.Duration) {
	l.returning--
	c.advance(l, now)
}

// advance lets the next message of l start. What is in doubt is given back instead: if it is void nothing happens, and
// otherwise it comes again.
func (c *consumer) advance(l *lane, now time.Duration) {
	if c.lanes.advance(l, now) {
		l.doubt = false
		c.giveBackQueue(l)
	}
}
