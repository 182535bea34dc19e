package worker

import "time"

// The slots are shared by all consumers. Messages that wait are started in turn. But where handlers take long nothing
// waits, and a slot that becomes free would always go to whoever fetches fastest. So while a consumer that found no
// slot free fetches again, the others do not fetch more than their share.

// appetite is how long others hold back for a consumer that fetches. If there was something for it, it came by then.
const appetite = 20 * time.Millisecond

// share is how many slots c gets if all consumers want as many as they can.
func (c *consumer) share() int {
	n := len(c.e.consumers)
	return min(c.limit, (c.e.pool.limit+n-1)/n)
}

// others tells how many free slots the other consumers can use already, and whether one of them has less than its share
// and just asks for more.
func (e *engine) others(c *consumer) (promised int, hungry bool) {
	if len(e.consumers) == 1 {
		return 0, false
	}
	for _, o := range e.consumers {
		if o != c {
			promised += min(o.lanes.ready.n, o.limit-o.inUse)
			hungry = hungry || o.hungry()
		}
	}
	return promised, hungry
}

func (c *consumer) hungry() bool {
	if c.quiet || c.inUse+c.lanes.ready.n >= c.share() {
		return false
	}
	if c.intake.parked {
		return true
	}
	until := c.intake.asked + appetite
	if c.intake.asked == 0 || until <= c.e.now() {
		return false
	}
	c.e.watchUntil(until) // for those that hold back
	return true
}

// makeRoom wakes the fetcher if it waits for room and there is some.
func (c *consumer) makeRoom() {
	if !c.intake.parked || c.room() == 0 {
		return
	}
	c.intake.parked = false
	c.e.parked--
	c.ask()
	c.intake.wake.Signal()
}

// ask notes that the fetcher is about to fetch.
func (c *consumer) ask() {
	if len(c.e.consumers) > 1 && c.intake.asked == 0 {
		c.intake.asked = c.e.now()
	}
}

// makeRoom does so for every consumer.
func (e *engine) makeRoom() {
	if e.parked == 0 {
		return
	}
	for _, c := range e.consumers {
		c.makeRoom()
	}
}
