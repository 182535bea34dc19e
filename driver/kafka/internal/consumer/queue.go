package consumer

import (
	"context"
	"sync"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/internal/container"
	"github.com/ferrymq/ferry/internal/scheduler"
)

// queue is what one group has not settled in the partitions that this process owns. It does no I/O; every method but
// until expects mu to be held.
type queue struct {
	mu                            sync.Mutex
	order                         driver.Order
	scheduled                     scheduler.Queue[Item] // what is ready, waits in strict order, or is claimed
	run                           []*Item               // scratch of take
	began                         time.Time
	alarms                        container.Heap[time.Duration, alarm] // by time since began, whatever the wall clock does
	places                        uint64
	claims                        uint64
	window, windowBytes, logBytes int             // see full and spill
	counts                        [itemStates]int // but for those that are gone
	buffer                        *pollBuffer     // of what is fed
	buffers                       []*pollBuffer
	instant                       time.Time // while much is fed at once: when that began; otherwise zero
	wake                          chan struct{}
	awaited                       bool           // somebody waits for wake
	ring                          cluster.Signal // tells the clock of a new alarm
}

func newQueue(order driver.Order) *queue {
	q := &queue{order: order, began: time.Now(), wake: make(chan struct{}), ring: cluster.NewSignal()}
	q.scheduled = scheduler.New[Item](q.wakeAll)
	q.alarms = container.NewHeap[time.Duration](func(alarm, int32) {})
	return q
}

// await returns what is closed when something may have changed.
func (q *queue) await() <-chan struct{} {
	q.awaited = true
	return q.wake
}

// until waits until something holds. It is asked with mu held, whenever something may have changed.
func (q *queue) until(ctx context.Context, holds func() bool) error {
	for {
		q.mu.Lock()
		if holds() {
			q.mu.Unlock()
			return nil
		}
		wake := q.await()
		q.mu.Unlock()
		select {
		case <-wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
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

func (q *queue) blocks(it *Item) bool {
	return q.order == driver.Strict && it.Msg.Key != "" && !it.loose
}

func (q *queue) enter(it *Item, to itemState) {
	q.counts[it.state]--
	it.p.counts[it.state]--
	it.state = to
	q.counts[to]++
	it.p.counts[to]++
}

// add takes a new item: ready, or waiting until it.due.
func (q *queue) add(it *Item) {
	q.places++
	it.Place = q.places
	switch {
	case !it.due.IsZero():
		q.wait(it)
	case it.loose: // replayed or moved: it has no place yet
		q.becomeDue(it)
	default:
		q.offer(it)
	}
	q.alarmExpiry(it)
}

// offer makes an item ready at its place.
func (q *queue) offer(it *Item) {
	if it.p.going { // the next owner offers it
		q.enter(it, ready)
		q.scheduled.Remove(&it.Node)
		return
	}
	it.since = q.instant
	if it.since.IsZero() {
		it.since = time.Now()
	}
	if it.expired(it.since) {
		q.leaveToClock(it, it.since)
		return
	}
	q.enter(it, ready)
	it.due, it.loose = time.Time{}, false
	q.scheduled.Ready(&it.Node, it.Msg.Key, it.Msg.Priority.Lane())
}

// leaveToClock has the clock end an item that has expired, at a time from now on.
func (q *queue) leaveToClock(it *Item, at time.Time) {
	q.withhold(it)
	q.enter(it, waiting)
	it.due = at
	q.alarm(at, it, nil)
}

// withhold has nobody claim an item while its end is stored. In strict order it keeps its place of its key, if it has
// one.
func (q *queue) withhold(it *Item) {
	q.enter(it, inflight)
	if q.order == driver.Strict && it.Chained() {
		q.scheduled.Block(&it.Node, it.Msg.Key)
	} else {
		q.scheduled.Remove(&it.Node)
	}
}

// wait keeps an item until it.due. In strict order it stays at its place of its key.
func (q *queue) wait(it *Item) {
	q.enter(it, waiting)
	q.alarm(it.due, it, nil)
	if q.blocks(it) && !it.p.going {
		q.scheduled.Block(&it.Node, it.Msg.Key)
	} else {
		q.scheduled.Remove(&it.Node)
	}
}

// becomeDue offers an item whose time has come.
func (q *queue) becomeDue(it *Item) {
	if it.Tail && !q.blocks(it) {
		q.toTail(it)
	}
	q.offer(it)
}

// toTail gives an item the last place of its lane and key. From then on it keeps it: that of a key is stored before
// somebody gets the item, so that the next owner does not deliver those that come after it first.
func (q *queue) toTail(it *Item) {
	q.scheduled.Remove(&it.Node)
	q.places++
	it.p.tailed++
	it.Place, it.Tail = q.places, false
	it.order, it.among = it.p.done.Next, it.p.tailed
	it.tailUnsaved = it.Msg.Key != ""
}

// take claims up to most items for s, runs of keys whole.
func (q *queue) take(s *subscription, most int, now time.Time) []*claim {
	out := make([]*claim, 0, min(most, q.counts[ready]))
	fits := func(it *Item) bool { return !it.expired(now) }
	for len(out) < most {
		it := q.scheduled.Next(&s.holder, scheduler.NoLane)
		if it == nil {
			break
		}
		if it.expired(now) {
			q.leaveToClock(it, now)
			continue
		}
		q.run = q.scheduled.Take(&s.holder, &it.Node, min(s.o.MaxRun, most-len(out)), fits, q.run[:0])
		for _, x := range q.run {
			out = append(out, q.claim(s, x, now))
		}
		clear(q.run)
	}
	q.arm(s, now)
	return out
}

func (q *queue) claim(s *subscription, it *Item, now time.Time) *claim {
	q.enter(it, inflight)
	q.claims++
	c := &claim{it: it, p: it.p, sub: s, number: q.claims, until: now.Add(s.o.Lease)}
	it.claimed = c
	it.p.leased++
	it.p.dirty = true // what is leased is committed too
	it.p.deliver(it)
	return c
}

// end ends a claim: nobody gets the item until it is offered, waits or is removed.
func (q *queue) end(c *claim) {
	it := c.it
	c.ended, c.it = true, nil // a token keeps the claim, but not what it was about
	it.claimed = nil
	q.scheduled.End(&c.sub.holder, &it.Node)
	c.p.leased--
	q.wakeAll() // its subscription may claim again
}

// returnBehind gives back the leased items of a key that come after it, uncounted. They are handled one after the
// other, so that nobody has seen them: their cause stays, unless the lease of the first was lost.
func (q *queue) returnBehind(it *Item, lost bool) {
	for x := range it.Followers() {
		if x.claimed == nil || x.claimed.settling != nil {
			continue
		}
		cause := x.cause
		if lost {
			cause = driver.CauseLeaseExpired
		}
		q.takeBack(x.claimed, cause)
	}
}

// takeBack ends a claim and gives its item back. The cause is for the next delivery, if there was one: a claim that was
// not completed is no news.
func (q *queue) takeBack(c *claim, cause driver.Cause) {
	it := c.it
	q.end(c)
	if c.delivered {
		it.cause = cause
	}
	it.p.m.unbegin(it)
	it.p.dirty = true // that it was given back is committed too
	q.offer(it)
}

// remove forgets an item.
func (q *queue) remove(it *Item) {
	q.enter(it, gone)
	q.scheduled.Remove(&it.Node)
	it.p.forget(it)
}
