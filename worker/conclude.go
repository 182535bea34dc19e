package worker

import (
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

var errFollowed = driver.NewError(ferry.ErrLeaseLost, "an earlier message of the same key and batch goes back, and takes this one with it",
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
	var back *lane // went back with an earlier message
	for i, m := range items {
		l := m.lane
		switch {
		case l != nil && l == back:
			c.refuse(m, each[i].Outcome, errFollowed)
		case c.send(m, &each[i]) && l != nil:
			c.follow(m, each[i].Outcome)
			if c.returns(each[i].Outcome) {
				back = l
			}
		}
		if l != nil && (i+1 == len(items) || items[i+1].lane != l) {
			c.lanes.advance(l, now)
		}
	}
}

// send queues an outcome, unless the broker has said that the message is not ours any more.
func (c *consumer) send(r *run, s *settlement) bool {
	if r.refused {
		c.refuse(r, s.Outcome, errLost)
		return false
	}
	c.tally(s)
	c.post(r, *s)
	return true
}

// refuse ends a run whose outcome cannot be sent.
func (c *consumer) refuse(r *run, o driver.Outcome, err error) {
	c.count.refused++
	c.notify(r, o, err)
	r.leave()
	if r == c.e.suspect {
		c.e.cleared()
	}
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
		if m.refused {
			m.leave() // its late result is refused
			if m == c.e.suspect {
				c.e.cleared()
			}
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
	if c.timeout > 0 && took >= c.timeout && !r.lost {
		return c.timedOut(r, took)
	}
	return released(r, took)
}

// released gives a run back, uncounted.
func released(r *run, _ time.Duration) settlement {
	return settlement{Delivery: r.d, Outcome: driver.Release}
}
