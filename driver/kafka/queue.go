package kafka

import (
	"slices"
	"sync"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// queue is what one group has not settled in the partitions that this process owns: four lanes, and a chain for each
// key. It does no I/O; every method but poke expects mu to be held.
type queue struct {
	mu                             sync.Mutex
	order                          driver.Order
	lanes                          [4]lane
	pass                           [4]uint64 // stride scheduling: the lane that is furthest behind is next
	passed                         uint64
	chains                         map[string]*chain
	alarms                         alarmHeap
	places                         uint64
	claims                         uint64
	items                          int
	window, windowBytes, sideBytes int // see full and spill
	counts                         [itemStates]int
	loans                          loans
	instant                        time.Time // while much is fed at once: when that began; otherwise zero
	wake                           chan struct{}
	awaited                        bool          // somebody waits for wake
	ring                           chan struct{} // tells the clock of a new alarm
}

// chain is the items of one key by place. In relaxed order those that wait are not in it.
type chain struct {
	items   []*item
	held    int
	offered *item
}

func newQueue(order driver.Order) *queue {
	return &queue{order: order, chains: map[string]*chain{}, wake: make(chan struct{}), ring: make(chan struct{}, 1)}
}

func (q *queue) poke() {
	select {
	case q.ring <- struct{}{}:
	default:
	}
}

// await returns what is closed when something may have changed.
func (q *queue) await() <-chan struct{} {
	q.awaited = true
	return q.wake
}

// wakeAll lets every Receive look again.
func (q *queue) wakeAll() {
	if !q.awaited {
		return
	}
	q.awaited = false
	close(q.wake)
	q.wake = make(chan struct{})
}

func (q *queue) blocks(it *item) bool {
	return q.order == driver.Strict && it.msg.Key != "" && !it.loose
}

func (q *queue) enter(it *item, to itemState) {
	if it.state != gone {
		q.counts[it.state]--
	} else {
		q.items++
	}
	it.state = to
	if to != gone {
		q.counts[to]++
	} else {
		q.items--
	}
}

// add takes a new item: ready, or waiting until it.due.
func (q *queue) add(it *item) {
	q.places++
	it.place, it.inLane = q.places, notInLane
	switch {
	case !it.due.IsZero():
		q.wait(it)
	case it.loose: // replayed or moved: it has no place yet
		q.becomeDue(it)
	default:
		q.offer(it)
	}
	if at := it.expires(); !at.IsZero() {
		q.alarm(at, it, nil)
	}
}

// offer makes an item ready at its place.
func (q *queue) offer(it *item) {
	if it.p.going {
		q.setAside(it)
		return
	}
	it.since = q.instant
	if it.since.IsZero() {
		it.since = time.Now()
	}
	if it.expired(it.since) {
		q.enter(it, waiting)
		it.due = it.since
		q.alarm(it.due, it, nil) // the clock ends it
		return
	}
	q.enter(it, ready)
	it.due, it.loose = time.Time{}, false
	if it.msg.Key == "" {
		q.push(it)
		return
	}
	c := q.chain(it.msg.Key)
	c.insert(it)
	q.arrange(it.msg.Key, c)
}

// wait keeps an item until it.due. In strict order it stays at its place of its key.
func (q *queue) wait(it *item) {
	if it.p.going {
		q.setAside(it)
		return
	}
	q.enter(it, waiting)
	q.alarm(it.due, it, nil)
	if q.blocks(it) {
		c := q.chain(it.msg.Key)
		c.insert(it)
		q.arrange(it.msg.Key, c)
	}
}

// setAside takes an item out of the queue, for the next owner of its partition.
func (q *queue) setAside(it *item) {
	q.enter(it, aside)
	q.detach(it)
}

// becomeDue offers an item whose time has come.
func (q *queue) becomeDue(it *item) {
	if it.tail && !q.blocks(it) {
		q.toTail(it)
	}
	q.offer(it)
}

// toTail gives an item the last place of its lane and key. From then on it keeps it: that of a key is stored before somebody gets the item, so that the next
// owner does not deliver those that come after it first.
func (q *queue) toTail(it *item) {
	q.detach(it)
	q.places++
	it.p.placed++
	it.place, it.tail = q.places, false
	it.order, it.among = it.p.done.next, it.p.placed
	it.unplaced = it.msg.Key != ""
}

func (q *queue) chain(key string) *chain {
	c := q.chains[key]
	if c == nil {
		c = &chain{}
		q.chains[key] = c
	}
	return c
}

func (c *chain) insert(it *item) {
	at, found := slices.BinarySearchFunc(c.items, it, func(a, b *item) int {
		switch {
		case a.place < b.place:
			return -1
		case a.place > b.place:
			return 1
		}
		return 0
	})
	if !found {
		c.items = slices.Insert(c.items, at, it)
	}
}

// detach takes an item out of its lane and key.
func (q *queue) detach(it *item) {
	q.withdraw(it)
	c := q.chains[it.msg.Key]
	if it.msg.Key == "" || c == nil {
		return
	}
	if i := slices.Index(c.items, it); i == 0 {
		c.items = c.items[1:]
	} else if i > 0 {
		c.items = slices.Delete(c.items, i, i+1)
	}
	q.arrange(it.msg.Key, c)
}

// arrange offers the one item of a key that may be claimed, if any.
func (q *queue) arrange(key string, c *chain) {
	var candidate *item
	if c.held == 0 && len(c.items) > 0 {
		candidate = c.items[0]
		for i := 0; q.order == driver.Relaxed && candidate.state != ready && i < len(c.items); i++ {
			candidate = c.items[i]
		}
		if candidate.state != ready {
			candidate = nil
		}
	}
	if c.offered != nil && c.offered != candidate {
		q.withdraw(c.offered)
	}
	c.offered = candidate
	if candidate != nil && candidate.inLane == notInLane {
		q.push(candidate)
	}
	if len(c.items) == 0 && c.held == 0 {
		delete(q.chains, key)
	}
}

func (q *queue) push(it *item) {
	l := it.msg.Priority.Lane()
	q.pass[l] = max(q.pass[l], q.passed)
	q.lanes[l].push(it)
	q.wakeAll()
}

func (q *queue) withdraw(it *item) {
	if it.inLane != notInLane {
		q.lanes[it.msg.Priority.Lane()].remove(it)
	}
}

// pick chooses the lane to claim from, or -1.
func (q *queue) pick(strict bool) int {
	best := -1
	for l := len(q.lanes) - 1; l >= 0; l-- {
		if q.lanes[l].len() == 0 {
			continue
		}
		if strict {
			return l
		}
		if best < 0 || q.pass[l] < q.pass[best] {
			best = l
		}
	}
	return best
}

// take claims up to most items for s, runs of keys whole.
func (q *queue) take(s *subscription, most int, now time.Time) []*claim {
	out := make([]*claim, 0, min(most, q.counts[ready]))
	for len(out) < most {
		l := q.pick(s.o.StrictPriority)
		if l < 0 {
			break
		}
		it := q.lanes[l].front()
		if it.expired(now) {
			q.withdraw(it)
			q.enter(it, waiting)
			it.due = now
			q.alarm(now, it, nil)
			continue
		}
		was := len(out)
		out = q.run(out, s, it, min(s.o.MaxRun, most-len(out)), now)
		q.passed = q.pass[l]
		q.pass[l] += uint64(len(out)-was) * (1 << 32 / uint64(s.o.Weights[l]))
	}
	return out
}

// run claims an item, with followers of its key.
func (q *queue) run(out []*claim, s *subscription, it *item, most int, now time.Time) []*claim {
	q.withdraw(it)
	if it.msg.Key == "" {
		return append(out, q.claim(s, it, now))
	}
	c := q.chains[it.msg.Key]
	c.offered = nil
	for i := slices.Index(c.items, it); i < len(c.items) && c.held < most && c.items[i].state == ready; i++ {
		c.held++
		out = append(out, q.claim(s, c.items[i], now))
	}
	return out
}

func (q *queue) claim(s *subscription, it *item, now time.Time) *claim {
	q.enter(it, inflight)
	q.claims++
	h := new(handed)
	c := &h.claim
	c.room = h
	c.it, c.p, c.sub, c.number, c.until = it, it.p, s, q.claims, now.Add(s.o.Lease)
	it.claimed = c
	it.p.held++
	it.p.dirty = true // who is held is committed too
	s.held++
	s.leases.append(c)
	q.arm(s, now)
	return c
}

// end ends a claim: the item is nowhere until it is offered, waits or is removed.
func (q *queue) end(c *claim) {
	it := c.it
	c.ended, c.it = true, nil // a token keeps the claim, but not what it was about
	it.claimed = nil
	c.sub.leases.remove(c)
	c.sub.held--
	c.p.held--
	if ch := q.chains[it.msg.Key]; ch != nil && it.msg.Key != "" {
		ch.held--
	}
	q.wakeAll() // its subscription may claim again
}

// returnBehind gives back the held items of a key that come after it, uncounted. They are handled one after the other, so that nobody has seen them: their cause
// stays, unless the lease of the first was lost.
func (q *queue) returnBehind(it *item, lost bool) {
	c := q.chains[it.msg.Key]
	if it.msg.Key == "" || c == nil {
		return
	}
	for _, x := range slices.Clone(c.items) {
		if x.place > it.place && x.state == inflight && x.claimed != nil && x.claimed.settling == nil {
			cause := x.cause
			if lost {
				cause = driver.CauseLeaseExpired
			}
			q.takeBack(x.claimed, cause)
		}
	}
}

// takeBack ends a claim and gives its item back. The cause is for the next delivery, if there was one: a claim that was not completed is no news.
func (q *queue) takeBack(c *claim, cause driver.Cause) {
	it := c.it
	q.end(c)
	if c.delivery != nil {
		it.cause = cause
	}
	it.p.m.unbegin(it)
	q.giveBack(it)
}

// giveBack offers a returned item at its old place, unless it has expired meanwhile.
func (q *queue) giveBack(it *item) {
	it.p.dirty = true // that it was given back is committed too
	q.offer(it)
	if at := it.expires(); !at.IsZero() {
		q.alarm(at, it, nil)
	}
}

// remove forgets an item.
func (q *queue) remove(it *item) {
	q.enter(it, gone)
	q.detach(it)
	it.p.forget(it)
}

// next is when the first alarm rings.
func (q *queue) next() (time.Time, bool) {
	if len(q.alarms) == 0 {
		return time.Time{}, false
	}
	return q.alarms[0].at, true
}
