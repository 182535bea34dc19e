package engine

import (
	"bytes"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/scheduler"
)

// claim leases up to most items to s.
func (s *subscription) claim(most int, now moment) []claim {
	g := s.g
	if g.paused || s.t.paused {
		return nil
	}
	most = min(most, s.o.MaxInflight-s.holder.Len())
	picked, unsafe := s.picked[:0], false // unsafe: what was picked must wait for the store anyhow
	fits := func(x *item) bool { return !x.e.expired(now) && (unsafe || !s.t.unsafe(x.e)) }
	for len(picked) < most {
		coming := scheduler.NoLane
		if g.cold > 0 { // more of it is in the store only
			coming = driver.Normal.Lane()
		}
		it := g.queue.Next(&s.holder, coming)
		if it == nil {
			break
		}
		if it.e.expired(now) {
			g.expire(it, now)
			continue
		}
		if moved := s.t.load(it.e, now); moved {
			continue
		}
		if len(picked) == 0 {
			unsafe = s.t.unsafe(it.e)
		} else if !fits(it) {
			break // what is there already need not wait for it
		}
		before := len(picked)
		picked = g.queue.Take(&s.holder, &it.Node, min(s.o.MaxRun, most-before), fits, picked)
		for _, x := range picked[before:] {
			g.move(x, inflight, now)
		}
	}
	claims := s.lease(picked, now)
	clear(picked)
	s.picked = picked[:0]
	if cap(picked) > 4096 {
		s.picked = nil
	}
	return claims
}

// lease makes a claim for each picked item, in one allocation.
func (s *subscription) lease(picked []*item, now moment) []claim {
	if len(picked) == 0 {
		return nil
	}
	claims := make([]claim, len(picked))
	expires := now.after(s.o.Lease)
	s.t.leaseNext = min(s.t.leaseNext, expires)
	last := s.e.claims.Add(uint64(len(picked)))
	receipt := s.t.claimed(s.g, picked, last)
	contents := s.t.contents(picked)
	for i, it := range picked {
		c := &claims[i]
		c.s, c.item, c.number, c.expires = s, it, last-uint64(i), expires
		it.claim = c
		if c.receipt = receipt; receipt != nil {
			c.handing.Store(notYet)
		}
		it.e.lend()
		c.entry, c.content = it.e, it.content()
		if contents != nil {
			c.entry = &contents[i]
			if c.content == it.e {
				c.content = c.entry
			}
		}
		c.attempt, c.deliveries, c.cause = it.failures+1, int32(it.lost)+1, it.cause
	}
	return claims
}

// delivered is a delivery and its message, side by side.
type delivered struct {
	d driver.Delivery
	m driver.Message
}

// deliveredAtOnce fill 8 KiB: much larger allocations are slow, and a delivery that is kept would keep more of them.
const deliveredAtOnce = 23

// deliver builds the deliveries of claims, without the lock: entries do not change once fanned. Those whose content is
// not in memory are in read, in the same order; what could not be read is left out.
func (s *subscription) deliver(claims []claim, read []found, now moment) []*driver.Delivery {
	var made []delivered
	ds := make([]*driver.Delivery, 0, len(claims))
	var bodies bodyCopies
	until := now.at.Add(s.o.Lease)
	for i := range claims {
		if len(made) == 0 {
			made = make([]delivered, min(len(claims)-i, deliveredAtOnce))
		}
		c, p := &claims[i], &made[0]
		var r *found
		if c.entry.is(onDisk) {
			r, read = &read[0], read[1:]
			if r.problem != nil {
				continue
			}
		}
		if !c.handOver() {
			continue
		}
		if r == nil {
			c.entry.fill(&p.m, s.t.name, c.content)
			bodies.add(&p.m, c.content.body)
		} else if p.m = *r.message; c.content != c.entry {
			overlay(&p.m, c.content)
		}
		made = made[1:]
		d := &p.d // field by field: a literal would be made elsewhere and copied
		d.Message, d.Group, d.Ref.Pos = &p.m, s.g.name, c.entry.seq
		d.Attempt, d.Deliveries, d.Cause = int(c.attempt), int(c.deliveries), c.cause
		d.ClaimedAt, d.LeaseUntil, d.Token = now.at, until, c
		c.entry, c.content = nil, nil // a token that is kept must not keep the message
		ds = append(ds, &p.d)
	}
	bodies.join()
	return ds
}

const (
	shareBelow   = 4 << 10  // the size up to which bodies of one Receive share an allocation
	bodiesAtOnce = 32 << 10 // the size of such an allocation: see deliveredAtOnce
)

// bodyCopies gives messages bodies of their own, small ones several in an allocation. bytes.Join does not clear it
// first, as make does, which for 1 KB costs as much as the copy.
type bodyCopies struct {
	messages [64]*driver.Message
	bodies   [64][]byte
	n, size  int
}

// add gives m a copy of a body, at the latest when join is called.
func (b *bodyCopies) add(m *driver.Message, body []byte) {
	switch {
	case len(body) == 0:
		return
	case len(body) >= shareBelow:
		m.Body = append([]byte(nil), body...)
		return
	case b.n == len(b.bodies) || b.size+len(body) > bodiesAtOnce:
		b.join()
	}
	b.messages[b.n], b.bodies[b.n] = m, body
	b.n, b.size = b.n+1, b.size+len(body)
}

// join copies what was added. Appending to one body never reaches the next.
func (b *bodyCopies) join() {
	joined := bytes.Join(b.bodies[:b.n], nil)
	for i, m := range b.messages[:b.n] {
		n := len(b.bodies[i])
		m.Body, joined = joined[:n:n], joined[n:]
	}
	b.n, b.size = 0, 0
}
