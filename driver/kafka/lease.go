package kafka

import (
	"fmt"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// claim is one lease of one item, and the token of its delivery.
type claim struct {
	it       *item // nil when it has ended
	p        *partition
	sub      *subscription
	number   uint64
	until    time.Time
	delivery *driver.Delivery // nil while it is not completed
	settling bool             // a settlement is on its way to the brokers
	ended    bool
	room     *handed // for the delivery

	before, behind *claim // among the leases of its subscription
}

// String names the claim in logs. The nonce is of the member, so that no other process can make the same one.
func (c *claim) String() string {
	return fmt.Sprintf("%s-%d-%d-%d", c.p.m.nonce, c.p.id, c.p.epoch, c.number)
}

// leases are the claims of one subscription. All last equally long, so that the first ends first, and one alarm is enough.
type leases struct {
	first, last *claim
	armed       bool
}

func (l *leases) append(c *claim) {
	if c.before = l.last; c.before != nil {
		c.before.behind = c
	} else {
		l.first = c
	}
	l.last = c
}

func (l *leases) remove(c *claim) {
	if c.before != nil {
		c.before.behind = c.behind
	} else {
		l.first = c.behind
	}
	if c.behind != nil {
		c.behind.before = c.before
	} else {
		l.last = c.before
	}
	c.before, c.behind = nil, nil
}

// arm sets the alarm for the first lease that can end. A settlement on its way is looked at again a little later.
func (q *queue) arm(s *subscription, now time.Time) {
	if s.leases.armed || s.leases.first == nil {
		return
	}
	at := now.Add(time.Second)
	for c := s.leases.first; c != nil; c = c.behind {
		if !c.settling {
			if c.until.Before(at) || c == s.leases.first {
				at = c.until
			}
			break
		}
	}
	s.leases.armed = true
	q.alarm(at, nil, s)
}

// endLeases takes back what nobody extended, and returns it.
func (m *member) endLeases(s *subscription, now time.Time) (lost []*item) {
	s.leases.armed = false
	for c := s.leases.first; c != nil && !c.until.After(now); {
		if c.settling {
			c = c.behind
			continue
		}
		it := c.it
		if c.delivery != nil {
			it.lost++
			it.unsaved = true
			it.p.tally.Redelivered++
			lost = append(lost, it)
		}
		m.returnBehind(it, driver.CauseReleased)
		m.takeBack(c, driver.CauseLeaseExpired)
		c = s.leases.first // others may have gone with it
	}
	m.arm(s, now)
	return lost
}
