package worker

import "time"

// The slots are shared by all consumers. Messages that wait are started in turn. But where handlers take long nothing
// waits, and a slot that becomes free would always go to whoever fetches fastest. So while a consumer that found no
// slot free fetches again, the others do not fetch more than their share.
//
// What consumers want is summed up as they change, and fetchers that wait for room are sorted by what would give it to
// them: a message costs the same among a thousand handlers as among ten (BenchmarkManyHandlers).

// appetite is how long others hold back for a consumer that fetches. If there was something for it, it came by then.
const appetite = 20 * time.Millisecond

// demand is what some consumers want of the slots.
type demand struct {
	promised int // free slots that what they hold fills already
	hungry   int // how many of them have less than their share and just ask for more
}

// share is how many slots c gets if all consumers want as many as they can.
func (c *consumer) share() int {
	n := len(c.e.consumers)
	return min(c.limit, (c.e.pool.limit+n-1)/n)
}

func (c *consumer) demand() demand {
	d := demand{promised: max(0, min(c.held()/c.batchSize, c.limit-c.inUse))}
	if c.hungry() {
		d.hungry = 1
	}
	return d
}

func (c *consumer) hungry() bool {
	if c.quiet || c.inUse+c.lanes.ready.n >= c.share() {
		return false
	}
	if c.intake.gate != notParked {
		return true
	}
	if c.intake.asked == 0 {
		return false
	}
	until := c.intake.asked + appetite
	if until <= c.e.now() {
		return false
	}
	c.e.watchUntil(until) // for those that hold back
	return true
}

// reckon brings the sum of what all want up to date with c.
func (c *consumer) reckon() {
	now, sum := c.demand(), &c.e.wants
	sum.promised += now.promised - c.wants.promised
	sum.hungry += now.hungry - c.wants.hungry
	c.wants = now
}

// unpromised is how many slots are free and not promised to what is held.
func (e *engine) unpromised() int { return e.pool.limit - e.active - e.zombies - e.wants.promised }

// roomBeside is how many deliveries c is to ask for now, beside what others want. Zero or less: none.
func (c *consumer) roomBeside() int {
	e := c.e
	return c.room(e.unpromised()+c.wants.promised, e.wants.hungry == c.wants.hungry)
}

// room does so where so many slots are free for c, and others are hungry or not. Zero while less than half of what may
// be held is missing, so that fetches are few and large.
func (c *consumer) room(slots int, calm bool) int {
	if c.quiet {
		return 0
	}
	free := max(0, min(c.limit-c.inUse, slots)) * c.batchSize
	target := min(max(free, c.pace.prefetch), c.pace.fits())
	if !calm {
		target = min(target, max(0, c.share()-c.inUse)*c.batchSize)
	}
	held := c.held()
	if missing := target - held; missing*2 >= target || held < free {
		return missing
	}
	return 0
}

// held is how many deliveries wait here to be started: of messages without a batch those that may start, so that a key
// whose first one runs for long does not keep others from being fetched.
func (c *consumer) held() int {
	if c.batch != nil {
		return c.lanes.ready.n + c.lanes.queued
	}
	return c.lanes.ready.n
}

// gate is what lets a parked fetcher go on, beside changes of its own consumer.
type gate uint8

const (
	notParked gate = iota
	forItself      // nothing that others do
	forSlot        // a slot that is free and not promised
	forCalm        // that nobody is hungry
	forEither      // one of them
	forBoth        // both of them
	gates
)

// gateOf is the gate of c, which has no room. A free slot that is not promised is one more than what it holds fills.
func (c *consumer) gateOf() gate {
	one := c.wants.promised + 1
	switch slot, calm := c.room(one, false) > 0, c.room(0, true) > 0; {
	case slot && calm:
		return forEither
	case slot:
		return forSlot
	case calm:
		return forCalm
	case c.room(one, true) > 0:
		return forBoth
	}
	return forItself
}

// park has the fetcher of c wait at a gate, or at none.
func (c *consumer) park(g gate) {
	in, parked := &c.intake, &c.e.parked
	if in.gate == g {
		return
	}
	if in.gate != notParked { // the last one takes its place
		at := parked[in.gate]
		last := at[len(at)-1]
		at[in.place], last.intake.place = last, in.place
		parked[in.gate] = at[:len(at)-1]
	}
	if in.gate = g; g != notParked {
		in.place = len(parked[g])
		parked[g] = append(parked[g], c)
	}
}

// makeRoom takes in that c has changed, or how many slots are free, and wakes the fetchers that have room now.
func (c *consumer) makeRoom() {
	c.reckon()
	if c.intake.gate != notParked {
		if c.roomBeside() > 0 {
			c.wakeFetcher()
		} else {
			c.park(c.gateOf())
		}
	}
	c.e.openGates()
}

// makeRoom does so where all may have changed.
func (e *engine) makeRoom() {
	for _, c := range e.consumers {
		c.reckon()
	}
	for _, c := range e.consumers {
		c.makeRoom()
	}
}

// openGates wakes the fetchers that have room because of others. One that is the only hungry one itself is not among
// them: it holds something, and looks for itself when that starts.
func (e *engine) openGates() {
	slot, calm := e.unpromised() > 0, e.wants.hungry == 0
	if slot {
		e.wakeFetchers(forSlot)
	}
	if calm {
		e.wakeFetchers(forCalm)
	}
	if slot || calm {
		e.wakeFetchers(forEither)
	}
	if slot && calm {
		e.wakeFetchers(forBoth)
	}
}

func (e *engine) wakeFetchers(g gate) {
	for n := len(e.parked[g]); n > 0; n = len(e.parked[g]) {
		e.parked[g][n-1].wakeFetcher()
	}
}

// wakeFetcher wakes the fetcher, which waits for room.
func (c *consumer) wakeFetcher() {
	c.park(notParked)
	c.ask()
	c.intake.wake.Signal()
}

// ask notes that the fetcher is about to fetch.
func (c *consumer) ask() {
	if len(c.e.consumers) > 1 && c.intake.asked == 0 {
		c.intake.asked = c.e.now()
	}
	c.reckon()
}
