package worker

import (
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

var errFollowed = driver.NewError(ferry.ErrLeaseLost,
	"an earlier message of the same key and batch goes back, and takes this one with it",
	"it is delivered again behind that one: make handlers idempotent", nil)

// conclude passes the outcome of one delivery on, and its key to the next message.
func (c *consumer) conclude(r *run, s *settlement, now time.Duration) {
	sent := c.send(r, s)
	if r.lane == nil {
		return
	}
	if sent {
		c.follow(r, s.Outcome)
	}
	c.lanes.advance(r.lane, now)
}

// follow decides what becomes of the rest of a run whose message r was settled so.
func (c *consumer) follow(r *run, o driver.Outcome) {
	l := r.lane
	switch {
	case c.returns(o):
		c.lanes.forget(l, r.fetch)
	case r.lost && l.queue.head != nil && l.queue.head.fetch == r.fetch:
		c.giveBackQueue(l) // unless the broker still accepts r, it comes again, and before these
	}
}

// concludeBatch does so for the members of a batch, in order. Those of one key stand together.
func (c *consumer) concludeBatch(items []*run, each []settlement, now time.Duration) {
	for i := 0; i < len(items); {
		l, n := items[i].lane, 1
		for l != nil && i+n < len(items) && items[i+n].lane == l {
			n++
		}
		c.concludeKey(items[i:i+n], each[i:i+n])
		if l != nil {
			c.lanes.advance(l, now)
		}
		i += n
	}
}

// concludeKey passes on the outcomes of members of one key, or of a single one without. The first that goes back takes
// those behind it along, which were handled too: they go first, as seen, and the last of them before the others,
// because each takes along what is behind it.
func (c *consumer) concludeKey(items []*run, each []settlement) {
	for i, m := range items {
		back := m.lane != nil && c.returns(each[i].Outcome)
		if back {
			for k := len(items) - 1; k > i; k-- {
				if items[k].cancelled.Load() && each[k].Outcome == driver.Drop {
					c.send(items[k], &each[k])
					continue
				}
				c.takeAlong(items[k], each[k].Outcome)
			}
		}
		if c.send(m, &each[i]) && m.lane != nil {
			c.follow(m, each[i].Outcome)
		}
		if back {
			return
		}
	}
}

// takeAlong gives back a message that was handled, because an earlier one of its key goes back.
func (c *consumer) takeAlong(r *run, o driver.Outcome) {
	c.count.refused++
	c.notify(r, o, errFollowed)
	c.post(r, settlement{Delivery: r.d, Outcome: driver.Release})
}

// send queues an outcome, unless the broker has said that the message is not ours any more. If it has recorded that the
// handler began it is told all the same: whoever speaks of a lost message was not killed by it, and the loss does not
// count.
func (c *consumer) send(r *run, s *settlement) bool {
	switch {
	case r.unheard():
		c.post(r, *s)
		return true
	case r.refused:
		c.refuse(r, s.Outcome, errLost)
		return false
	}
	c.tally(s)
	c.post(r, *s)
	return true
}

// unheard reports whether the broker has to be told that we live although r is lost.
func (r *run) unheard() bool { return r.refused && r.begun && !r.heard }

// refuse ends a run whose outcome cannot be sent.
func (c *consumer) refuse(r *run, o driver.Outcome, err error) {
	c.count.refused++
	c.notify(r, o, err)
	r.leave()
}

// returns reports whether the broker takes the followers of a key back with a message that is settled so.
func (c *consumer) returns(o driver.Outcome) bool {
	return c.strict() && (o == driver.Release || o == driver.Retry)
}

// abandon settles a run whose handler does not return, as verdict says. It keeps its slot: it is a zombie.
func (c *consumer) abandon(r *run, now time.Duration, verdict func(r *run, took time.Duration) settlement) {
	c.e.active--
	c.e.zombies++
	c.count.zombies++
	r.abandoned = true
	var held []*run
	var each []settlement
	r.each(func(m *run) {
		if m.refused && !m.unheard() {
			m.leave() // its late result is refused
			return
		}
		held, each = append(held, m), append(each, verdict(m, now-r.started))
	})
	c.concludeBatch(held, each, now)
	c.settleSoon()
	c.e.offer(c)
	c.e.moved()
}

// overdue settles a run whose handler did not return after its context was cancelled: for its timeout, or because a
// lease was lost.
func (c *consumer) overdue(r *run, took time.Duration) settlement {
	if c.timeout > 0 && took >= c.timeout && !r.lost && !r.cancelled.Load() {
		return c.timedOut(r, took)
	}
	return released(r, took)
}

// released gives a run back, uncounted. One that was cancelled is dropped.
func released(r *run, _ time.Duration) settlement {
	if r.cancelled.Load() {
		return *dropped(r)
	}
	return settlement{Delivery: r.d, Outcome: driver.Release}
}
