package consumer

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
)

// claim is one lease of one item, and the token of its delivery. It is one allocation with that and the message.
type claim struct {
	it        *Item // nil when it has ended
	p         *partition
	sub       *subscription
	number    uint64
	until     time.Time
	delivered bool      // otherwise it is not completed yet
	settling  *settling // on its way to the brokers; nil: none
	begun     bool      // its handler was about to start, and that is stored
	silent    bool      // it had begun and was lost, and its holder has said nothing since
	spoken    bool      // its holder was told that it is lost before it was; see refuse
	logKey    string    // key of its item in the retry log, once it has begun
	// a settlement could not be stored, or nobody knows: those behind it in its key wait for another try
	failed bool
	// the last step of a call that put a settlement of it off: a second one of that call is not settled first
	deferred uint64
	ended    bool
	delivery driver.Delivery
	msg      driver.Message
}

// String names the claim in logs. The nonce is of the member, so that no other process can make the same one.
func (c *claim) String() string {
	return fmt.Sprintf("%s-%d-%d-%d", c.p.m.nonce, c.p.id, c.p.epoch, c.number)
}

// arm sets the alarm for the first lease that can end: one is enough, since they end in order. A settlement on its way
// is looked at again a little later.
func (q *queue) arm(s *subscription, now time.Time) {
	first := s.holder.First()
	if s.armed || first == nil {
		return
	}
	at := now.Add(time.Second)
	for it := range s.holder.All() {
		if c := it.claimed; c.settling == nil {
			if c.until.Before(at) || it == first {
				at = c.until
			}
			break
		}
	}
	s.armed = true
	q.alarm(at, nil, s)
}

// lapse ends the leases that are over. Before anything is settled or extended: what is behind a lost message of its key
// went with it.
func (s *subscription) lapse(now time.Time) {
	if it := s.holder.First(); it != nil && !it.claimed.until.After(now) {
		s.m.endLeases(s, now)
	}
}

// refuse is told that the holder of a delivery hears that it is lost. It returns what the owner of its partition must
// be told. If nobody vouches for us the lease ends: should the partition turn out to be ours still, what is behind it
// in its key must not be settled before it comes again.
func (s *subscription) refuse(d *driver.Delivery, now time.Time) []*kgo.Record {
	c, ok := d.Token.(*claim)
	if !ok || c.sub != s {
		return nil
	}
	notices := c.heard(now)
	if !c.ended && c.settling == nil && !c.p.over && !c.p.succeeded && !s.m.vouched(now) {
		c.until = now
		s.holder.Forfeit(&c.it.Node)
		s.m.alarm(now, nil, s)
	}
	return notices
}

// lose counts that a lease ended which nobody extended.
func (c *claim) lose() {
	it, begun := c.it, ""
	if c.begun {
		begun = c.String()
	}
	it.lose(begun)
	it.p.suspect(it)
	it.p.tally.Redelivered++
	if c.spoken {
		it.hear(begun)
	} else {
		c.noteSilent()
	}
}

// endLeases takes back what nobody extended.
func (m *member) endLeases(s *subscription, now time.Time) {
	s.armed = false
	for it := s.nextLapsed(now); it != nil; it = s.nextLapsed(now) { // others may have gone with the last one
		c := it.claimed
		if c.delivered {
			c.lose()
		}
		m.returnBehind(it, true)
		m.takeBack(c, driver.CauseLeaseExpired)
	}
	m.arm(s, now)
}

// nextLapsed returns the first item whose lease is over, or nil. What is being settled is not lost.
func (s *subscription) nextLapsed(now time.Time) *Item {
	for it := range s.holder.All() {
		switch c := it.claimed; {
		case c.until.After(now):
			return nil
		case c.settling == nil:
			return it
		}
	}
	return nil
}
