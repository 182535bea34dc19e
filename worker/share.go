package worker

import "time"

// The slots are shared by all consumers. Messages that wait are started in turn. But where handlers take long nothing
// waits, and a slot that becomes free would always go to whoever fetches fastest. So while a consumer that found no
// slot free fetches again, the others do not fetch more than their share: of the slots, or where only quick handlers
// ask, of what is likely to start soon.
//
// What consumers want is summed up as they change, and fetchers that wait for room are sorted by what gives it to them:
// a message costs the same among a thousand handlers as among ten (BenchmarkManyHandlers).

// appetite is how long others hold back for a consumer that fetches. If there was something for it, it came by then.
const appetite = 20 * time.Millisecond

// demand is what some consumers want of the slots.
type demand struct {
	promised int // free slots that what they hold fills already
	hungry   int // how many of them have less than their share and just ask for more
	slow     int // how many of those have handlers so slow that nothing of theirs waits for a slot
}

func (d demand) plus(o demand) demand {
	return demand{d.promised + o.promised, d.hungry + o.hungry, d.slow + o.slow}
}

func (d demand) minus(o demand) demand {
	return demand{d.promised - o.promised, d.hungry - o.hungry, d.slow - o.slow}
}

// leeway is how far a consumer may fetch ahead beside others that want this.
func (d demand) leeway() leeway {
	switch {
	case d.slow > 0:
		return shareOfSlots
	case d.hungry > 0:
		return shareOfSoon
	}
	return everything
}

// leeway is how far a consumer may fetch ahead.
type leeway uint8

const (
	shareOfSlots leeway = iota
	shareOfSoon
	everything
	beyond // nobody may
	leeways
)

// share is how many slots c gets if all consumers want as many as they can.
func (c *consumer) share() int {
	n := len(c.e.consumers)
	return min(c.limit, (c.e.pool.limit+n-1)/n)
}

func (c *consumer) demand() demand {
	d := demand{promised: c.fills()}
	if c.hungry() {
		d.hungry = 1
		if c.pace.shared == 0 {
			d.slow = 1
		}
	}
	return d
}

func (c *consumer) hungry() bool {
	if c.quiet || c.inUse+c.lanes.ready.n >= c.share() {
		return false
	}
	if c.intake.parked {
		return c.intake.gate.free == shareOfSlots // a slot is all that it needs
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
	d := c.demand()
	c.e.wants = c.e.wants.minus(c.wants).plus(d)
	c.wants = d
}

// unpromised is how many slots are free and not promised to what is held.
func (e *engine) unpromised() int { return e.pool.limit - e.active - e.zombies - e.wants.promised }

// held is how many deliveries wait here to be started: of messages without a batch those that may start, so that a key
// whose first one runs for long does not keep others from being fetched.
func (c *consumer) held() int {
	if c.batch != nil {
		return c.lanes.ready.n + c.lanes.queued
	}
	return c.lanes.ready.n
}

// fills is how many slots what is held fills.
func (c *consumer) fills() int { return max(0, min(c.held()/c.batchSize, c.limit-c.inUse)) }

// roomBeside is how many deliveries to ask for now, beside what others want. None if it is not positive.
func (c *consumer) roomBeside() int {
	e := c.e
	return c.room(e.unpromised()+c.fills(), e.wants.minus(c.wants).leeway())
}

// room does so with so many slots and so much leeway. There is none while less than half of what may be held is
// missing, so that fetches are few and large.
func (c *consumer) room(slots int, l leeway) int {
	if c.quiet {
		return 0
	}
	free := max(0, min(c.limit-c.inUse, slots)) * c.batchSize
	target := min(max(free, c.pace.prefetch), c.pace.fits())
	if l != everything {
		most := max(0, c.share()-c.inUse) * c.batchSize
		if l == shareOfSoon {
			most = max(most, c.pace.shared)
		}
		target = min(target, most)
	}
	held := c.held()
	if missing := target - held; missing*2 >= target || held < free {
		return missing
	}
	return 0
}

// gate is what gives room to a consumer that has none, beside changes of its own: so much leeway while all slots are
// taken or promised, and while one is free.
type gate struct{ busy, free leeway }

// gate is that of c. A slot that is free is one more than what it holds fills.
func (c *consumer) gate() gate {
	if len(c.e.consumers) == 1 {
		return gate{beyond, beyond} // there is nothing but changes of its own
	}
	return gate{busy: c.needs(0), free: c.needs(c.fills() + 1)}
}

// needs is the least leeway that gives room with so many slots.
func (c *consumer) needs(slots int) leeway {
	l := shareOfSlots
	for l < beyond && c.room(slots, l) <= 0 {
		l++
	}
	return l
}

// parked are the consumers whose fetchers wait for room, by their gates.
type parked [leeways][leeways][]*consumer

func (p *parked) at(g gate) *[]*consumer { return &p[g.busy][g.free] }

// park has the fetcher of c wait at the gate that it has now.
func (c *consumer) park() {
	in, g := &c.intake, c.gate()
	if in.parked {
		if in.gate == g {
			return
		}
		c.unpark()
	}
	queue := c.e.parked.at(g)
	in.parked, in.gate, in.place = true, g, len(*queue)
	*queue = append(*queue, c)
}

// unpark takes c from its gate. The last one there takes its place.
func (c *consumer) unpark() {
	in, queue := &c.intake, c.e.parked.at(c.intake.gate)
	last := len(*queue) - 1
	other := (*queue)[last]
	(*queue)[in.place], other.intake.place = other, in.place
	*queue = (*queue)[:last]
	in.parked = false
}

// makeRoom takes in that c has changed, or how many slots are free, and wakes the fetchers that have room now.
func (c *consumer) makeRoom() {
	if c.intake.parked {
		c.park()
	}
	c.reckon()
	if c.intake.parked && c.roomBeside() > 0 {
		c.wakeFetcher()
	}
	c.e.openGates()
}

// makeRoom does so where all may have changed.
func (e *engine) makeRoom() {
	for _, c := range e.consumers {
		if c.intake.parked {
			c.park()
		}
		c.reckon()
	}
	for _, c := range e.consumers {
		c.makeRoom()
	}
}

// openGates wakes the fetchers that have room because of others. One that is hungry itself and finds all slots taken is
// not among them: it holds something, and looks for itself when that starts.
func (e *engine) openGates() {
	if len(e.consumers) == 1 {
		return
	}
	l, slot := e.wants.leeway(), e.unpromised() > 0
	for busy := range leeways {
		for free := range busy + 1 { // a free slot never makes it harder
			if busy <= l || slot && free <= l {
				e.wakeFetchers(&e.parked[busy][free])
			}
		}
	}
}

func (e *engine) wakeFetchers(queue *[]*consumer) {
	for len(*queue) > 0 {
		(*queue)[len(*queue)-1].wakeFetcher()
	}
}

// wakeFetcher wakes the fetcher, which waits for room.
func (c *consumer) wakeFetcher() {
	c.unpark()
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
