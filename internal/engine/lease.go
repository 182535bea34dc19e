package engine

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/refusal"
)

// claim is one lease of one item. Its address fences the delivery: an item knows its only living claim.
type claim struct {
	s       *subscription
	item    *item // nil once the lease is over
	number  uint64
	expires tick
	receipt *receipt // in the store; nil without one

	// What the delivery says, noted at the time of the claim.
	entry, content *entry
	attempt        int32
	deliveries     int32

	handing atomic.Uint32
	cause   driver.Cause
	begun   bool // its handler is about to start, or has
}

// With a store a claim is handed over only when it is stored. If it ends before, nobody has seen the message.
const (
	handedOver  = iota
	notYet      // the call of Receive that made it waits for the store
	neverHanded // it ended meanwhile, and must not be handed over
)

// handOver reports whether the claim may be handed over: it has not ended unseen.
func (c *claim) handOver() bool {
	return c.handing.Load() == handedOver || c.handing.CompareAndSwap(notYet, handedOver)
}

// unseen reports whether the claim, which ends, was never handed over.
func (c *claim) unseen() bool { return c.handing.CompareAndSwap(notYet, neverHanded) }

// String names the claim by the nonce of the engine and a counter.
func (c *claim) String() string { return fmt.Sprintf("%016x-%d", c.s.e.nonce, c.number) }

// end ends the lease, whatever the reason. What becomes of the item is up to the caller.
func (c *claim) end() {
	s, it := c.s, c.item
	if s.full() {
		s.wake()
	}
	s.g.queue.End(&s.holder, &it.Node)
	it.claim, c.item = nil, nil
	if c.receipt != nil {
		s.t.release(c.receipt)
	}
}

// living returns the claim of a delivery that s still holds.
func (s *subscription) living(d *driver.Delivery, now moment) (*claim, error) {
	if err := d.Check(); err != nil {
		return nil, err
	}
	c, ok := d.Token.(*claim)
	if !ok || c.s != s || c.item == nil || c.expires <= now.tick {
		var why error
		if s.closed {
			why = driver.ErrClosed
		}
		return nil, d.Lost(why)
	}
	return c, nil
}

// spoken is living for a word of the holder: if it comes late, the holder was heard of.
func (s *subscription) spoken(d *driver.Delivery, now moment) (*claim, error) {
	c, err := s.living(d, now)
	if err != nil && d != nil && len(s.losses) > 0 {
		if late, ok := d.Token.(*claim); ok {
			s.heardOf(late)
		}
	}
	return c, err
}

// Extend makes leases end one full lease from now.
func (s *subscription) Extend(ctx context.Context, ds []*driver.Delivery) []error {
	heard, errs := false, make([]error, len(ds))
	r := s.each(errs, refusal.Closed, func(i int, now moment) error {
		losses := len(s.losses)
		c, err := s.spoken(ds[i], now)
		heard = heard || len(s.losses) < losses
		if err == nil {
			c.expires = now.after(s.o.Lease)
			s.holder.Renew(&c.item.Node)
		}
		return err
	})
	if r != nil && heard {
		_ = r.Wait(ctx, false) // what was taken back stands; if the store failed, the next call says so
	}
	return errs
}

// loseLeases returns what is held by leases that ended: counted, at its old place. What the holder has behind it of
// the same key returns too, uncounted, so that order and one-at-a-time hold.
func (t *topic) loseLeases(now moment) {
	t.leaseNext = never
	for _, g := range t.groups {
		for _, s := range g.members {
			s.loseLeases(now)
			if it := s.holder.First(); it != nil {
				t.leaseNext = min(t.leaseNext, it.claim.expires)
			}
		}
	}
}

func (s *subscription) loseLeases(now moment) {
	var lost []*item
	for it := s.holder.First(); it != nil && it.claim.expires <= now.tick; it = s.holder.First() {
		c := it.claim
		if c.end(); !c.unseen() {
			s.lose(c, it)
		}
		lost = append(lost, it)
	}
	for _, it := range lost { // all are counted before the first one takes others with it
		s.g.returnBehind(it, true, now)
		s.g.comeBack(it, now)
	}
}

// returnBehind returns what is in flight behind it in its chain, uncounted. Messages of a key are run one after the
// other, so none of them was seen, unless their holder is lost: then nobody knows.
func (g *group) returnBehind(it *item, lost bool, now moment) {
	for x := range it.Followers() {
		c := x.claim
		if c == nil {
			continue
		}
		if c.end(); !c.unseen() && lost {
			x.cause = driver.CauseLeaseExpired
		}
		g.comeBack(x, now)
	}
}
