package worker

import "time"

// canStart reports whether a slot could start something of c.
func (c *consumer) canStart() bool {
	n := c.lanes.ready.n
	if n == 0 || c.inUse >= c.limit {
		return false
	}
	if c.batch == nil || n+c.lanes.queued >= c.batchSize {
		return true
	}
	due := c.lanes.ready.head.arrived + c.batchWait
	if due <= c.e.now() {
		return true
	}
	c.e.watchUntil(due)
	return false
}

// take removes what is to run next: a message, or a batch. It returns nil if there was nothing after all.
func (c *consumer) take(now time.Duration) *run {
	if c.batch == nil {
		return c.takeOne(now)
	}
	var items []*run
	for len(items) < c.batchSize {
		r := c.takeOne(now)
		if r == nil {
			break
		}
		items = append(items, r)
		items = c.takeFollowers(r.lane, items, now)
	}
	if len(items) == 0 {
		return nil
	}
	return c.lead(items, now)
}

// lead returns the run of a batch.
func (c *consumer) lead(items []*run, now time.Duration) *run {
	r := &run{c: c, batch: &items}
	for _, m := range items {
		m.started = now
	}
	return r
}

// takeOne removes the next message that may start. Suspects are set aside until it is their turn.
func (c *consumer) takeOne(now time.Duration) *run {
	for r := c.lanes.ready.pop(); r != nil; r = c.lanes.ready.pop() {
		switch {
		case !c.fit(r, now):
		case suspect(r.d):
			c.e.setAside(r, now)
		default:
			return r
		}
	}
	return nil
}

// fit reports whether r, whose turn has come, is still to be run, and disposes of it if not.
func (c *consumer) fit(r *run, now time.Duration) bool {
	switch {
	case c.leaseOver(r, now):
		c.skip(r, now)
	case r.ttlUntil <= now:
		c.outlived(r, now)
	default:
		return true
	}
	return false
}

// takeFollowers adds the messages behind the first of a key to its batch.
func (c *consumer) takeFollowers(l *lane, items []*run, now time.Duration) []*run {
	if l == nil {
		return items
	}
	for len(items) < c.batchSize {
		r := l.queue.head
		if r == nil || c.leaseOver(r, now) || r.ttlUntil <= now || suspect(r.d) {
			break
		}
		items = append(items, c.lanes.shift(l))
	}
	return items
}

// leaseOver reports whether the lease of a waiting message is, or is about to be, lost.
func (c *consumer) leaseOver(r *run, now time.Duration) bool {
	return r.lost || r.leaseUntil-c.margin <= now
}

// skip passes over a lost message whose turn has come. The rest of its run is lost with it.
func (c *consumer) skip(r *run, now time.Duration) {
	r.leave()
	c.forgetRun(r)
	if r.lane != nil {
		c.lanes.advance(r.lane, now)
	}
}
