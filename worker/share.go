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

// demand is what some consumers want of the slots.
type demand struct {
	promised int // free slots that they can use already
	hungry   int // how many of them have less than their share and just ask for more
}

func (d demand) plus(o demand) demand  { return demand{d.promised + o.promised, d.hungry + o.hungry} }
func (d demand) minus(o demand) demand { return demand{d.promised - o.promised, d.hungry - o.hungry} }

// demandBeside is that of all consumers but c, which may be nil.
func (e *engine) demandBeside(c *consumer) (d demand) {
	now := e.now()
	for _, o := range e.consumers {
		if o != c {
			d = d.plus(o.demand(now))
		}
	}
	return d
}

func (c *consumer) demand(now time.Duration) demand {
	d := demand{promised: max(0, min(c.lanes.ready.n, c.limit-c.inUse))}
	if c.hungry(now) {
		d.hungry = 1
	}
	return d
}

func (c *consumer) hungry(now time.Duration) bool {
	if c.quiet || c.inUse+c.lanes.ready.n >= c.share() {
		return false
	}
	if c.intake.parked {
		return true
	}
	until := c.intake.asked + appetite
	if c.intake.asked == 0 || until <= now {
		return false
	}
	c.e.watchUntil(until) // for those that hold back
	return true
}

// makeRoom wakes the fetcher if it waits for room and there is some.
func (c *consumer) makeRoom() {
	if c.intake.parked {
		c.wakeFetcher(c.e.demandBeside(c))
	}
}

// wakeFetcher wakes the fetcher, which waits for room, if there is some beside what others want.
func (c *consumer) wakeFetcher(others demand) {
	if c.room(others) == 0 {
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

// makeRoom does so for every consumer. What they want is added up once: a thousand would look a million times.
func (e *engine) makeRoom() {
	if e.parked == 0 {
		return
	}
	all, now := e.demandBeside(nil), e.now()
	for _, c := range e.consumers {
		if c.intake.parked {
			others := all.minus(c.demand(now))
			c.wakeFetcher(others)
			all = others.plus(c.demand(now))
		}
	}
}
