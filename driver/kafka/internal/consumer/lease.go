package consumer

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
)

// claim is one lease of one item, and the token of its delivery.
type claim struct {
	it       *Item // nil when it has ended
	p        *partition
	sub      *subscription
	number   uint64
	until    time.Time
	delivery *driver.Delivery // nil while it is not completed
	settling *settling        // on its way to the brokers; nil: none
	begun    bool             // its handler was about to start, and that is stored
	silent   bool             // it had begun and was lost, and its holder has said nothing since
	spoken   bool             // its holder was told that it is lost before it was; see forfeit
	logKey   string           // key of its item in the retry log, once it has begun
	// a settlement could not be stored, or nobody knows: those behind it in its key wait for another try
	failed bool
	// the last step of a call that put a settlement of it off: a second one of that call is not settled first
	deferred uint64
	ended    bool
	made     *claimedDelivery // for the delivery
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

// lapse ends the leases that are over, and returns what was lost. Before anything is settled or extended: what is
// behind a lost message of its key went with it.
func (s *subscription) lapse(now time.Time) (lost []*Item) {
	if it := s.holder.First(); it != nil && !it.claimed.until.After(now) {
		lost = s.m.endLeases(s, now)
	}
	return lost
}

// saveLapsed stores what was lost.
func (m saver) saveLapsed(lost []*Item) {
	for _, it := range lost {
		m.saver.saveLater(context.Background(), it)
	}
}

// refuse is told that the holder of a delivery hears that it is lost. It returns what the owner of its partition must
// be told.
func (s *subscription) refuse(d *driver.Delivery, now time.Time) (notices []*kgo.Record) {
	if r := s.heard(d, now); r != nil {
		notices = append(notices, r)
	}
	s.forfeit(d, now)
	return notices
}

// forfeit ends the lease of a delivery whose holder is told that it is lost because nobody vouches for us. If the
// partition turns out to be ours still, what is behind it in its key must not be settled before it comes again.
func (s *subscription) forfeit(d *driver.Delivery, now time.Time) {
	c, ok := d.Token.(*claim)
	if !ok || c.sub != s || c.ended || c.settling != nil || c.p.settleOver || c.p.succeeded || s.m.vouched(now) {
		return
	}
	c.until = now
	s.holder.Forfeit(&c.it.Node)
	s.m.alarm(now, nil, s)
}

// lose counts that a lease ended which nobody extended.
func (c *claim) lose() {
	it, begun := c.it, ""
	if c.begun {
		begun = c.String()
	}
	it.lose(begun)
	it.unsaved = true
	it.p.tally.Redelivered++
	if c.spoken {
		it.hear(begun)
	} else {
		c.noteSilent()
	}
}

// endLeases takes back what nobody extended, and returns it.
func (m *member) endLeases(s *subscription, now time.Time) (lost []*Item) {
	s.armed = false
	for it := s.nextLapsed(now); it != nil; it = s.nextLapsed(now) { // others may have gone with the last one
		c := it.claimed
		if c.delivery != nil {
			c.lose()
			lost = append(lost, it)
		}
		m.returnBehind(it, true)
		m.takeBack(c, driver.CauseLeaseExpired)
	}
	m.arm(s, now)
	return lost
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
