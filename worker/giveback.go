package worker

// Messages go back to the broker when a handler failed, and when they cannot start here after all. In strict order the
// broker takes the rest of the run of their key back in the same step, so the rest is dropped here before that: none of
// it starts.

// giveBackAll returns everything that has not started.
func (c *consumer) giveBackAll() {
	c.giveBackReady()
	for _, r := range c.takeWaitingSuspects(func(*run) bool { return true }) {
		c.giveBack(r)
	}
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
	if r.lost {
		c.skip(r, c.e.now())
		return
	}
	c.release(r)
	if l := r.lane; l != nil {
		if c.strict() {
			c.lanes.forget(l, r.fetch)
		}
		c.giveBackQueue(l)
		c.lanes.close(l)
	}
}

// giveBackQueue returns what waits behind the first message of a key.
func (c *consumer) giveBackQueue(l *lane) {
	for r := c.lanes.shift(l); r != nil; r = c.lanes.shift(l) {
		c.release(r)
		if c.strict() {
			c.lanes.forget(l, r.fetch)
		}
	}
}

// forgetRun drops the rest of the run that r belonged to: the broker has taken it back, or will.
func (c *consumer) forgetRun(r *run) {
	if l := c.lanes.keys[r.d.Key]; l != nil {
		c.lanes.forget(l, r.fetch)
	}
}
