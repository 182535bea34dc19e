package worker

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/leasekeeper"
)

// renew extends the leases of everything held, running or not, in one call every third of a lease, until the engine
// closes. Leases that end are the watchdog's business: it looks at handlers anyway, and a lease costs nothing
// meanwhile.
func (c *consumer) renew(ctx context.Context) {
	_ = leasekeeper.Run(ctx, time.Now(), c.lease, c.renewAll) // which says of single ones that they are lost
}

// errNotRenewed says that some leases could not be extended, and have to be tried again soon.
var errNotRenewed = errors.New("not every lease was renewed")

// renewAll extends what has used up a quarter of its lease. Each answer is of its own try, whenever the first was.
func (c *consumer) renewAll(ctx context.Context, _ time.Time) error {
	runs, ds := c.expiring()
	if len(ds) == 0 {
		return nil
	}
	before := c.e.now() // the new lease is reckoned from before the request
	errs := c.conn.Extend(ctx, ds)
	c.failIfClosed(errs)
	if !c.renewed(runs, errs, before+c.lease) {
		return errNotRenewed
	}
	return nil
}

// expiring collects what is held and was not renewed just now.
func (c *consumer) expiring() (runs []*run, ds []*driver.Delivery) {
	e := c.e
	e.mu.Lock()
	defer e.mu.Unlock()
	fresh := e.now() + c.lease*3/4
	c.eachHeld(func(r *run) {
		if r.leaseUntil <= fresh && !r.lost {
			runs, ds = append(runs, r), append(ds, r.d)
		}
	})
	return runs, ds
}

// eachHeld calls f for every delivery that is ours: waiting, running, or on its way to be settled.
func (c *consumer) eachHeld(f func(*run)) {
	for r := c.lanes.ready.head; r != nil; r = r.next {
		f(r)
	}
	for _, l := range c.lanes.keys {
		for r := l.queue.head; r != nil; r = r.next {
			f(r)
		}
	}
	for _, s := range c.e.pool.slots {
		if s.cur != nil && s.cur.c == c && !s.cur.abandoned {
			s.cur.each(f)
		}
	}
	for _, r := range c.outbox.sending {
		f(r)
	}
	for _, r := range c.outbox.runs {
		f(r)
	}
	for _, r := range c.e.suspects.waiting {
		if r.c == c {
			f(r)
		}
	}
}

// renewed takes in the answers.
func (c *consumer) renewed(runs []*run, errs []error, until time.Duration) (ok bool) {
	e := c.e
	ok = true
	var lost []*run
	e.mu.Lock()
	now := e.now()
	for i, r := range runs {
		switch err := answer(errs, i); {
		case err == nil:
			r.leaseUntil = max(r.leaseUntil, until)
		case errors.Is(err, ferry.ErrLeaseLost):
			lost = c.takenAway(r, now, lost)
		default:
			ok = false
		}
	}
	c.settleSoon()
	e.offer(c)
	e.wakeSlot()
	c.makeRoom()
	e.moved()
	e.mu.Unlock()
	e.announceLost(lost)
	return ok
}

// takenAway handles a lease that the broker says is lost.
func (c *consumer) takenAway(r *run, now time.Duration, lost []*run) []*run {
	r.heard = true
	switch r.state {
	case running:
		if c.lose(c.leader(r), r, true, now) {
			return append(lost, r)
		}
	case waiting, following, starting:
		r.lost = true // and is skipped when its turn comes
	}
	return lost // otherwise it was settled meanwhile, or the settler finds out
}

// leader is the run whose context the handler of r has: its own, or that of its batch.
func (c *consumer) leader(r *run) *run {
	for _, s := range c.e.pool.slots {
		if s.cur != nil && s.cur.c == c && s.cur.batch != nil && slices.Contains(*s.cur.batch, r) {
			return s.cur
		}
	}
	return r
}

// lose cancels the handler of a run whose lease is lost: by the broker's word (refused), or by our clock, and then what
// the handler returns soon may still count. It reports whether this was news.
func (c *consumer) lose(lead, r *run, refused bool, now time.Duration) bool {
	if r.lost {
		return false
	}
	r.lost, r.refused = true, refused
	c.count.leasesLost++
	lead.overtime, lead.timeoutAt = true, now+timeoutGrace
	lead.cancel(ferry.ErrLeaseLost)
	c.e.watchUntil(lead.timeoutAt)
	if refused && r.lane != nil {
		c.detach(lead, r, now)
	}
	return true
}

// detach opens a key whose message comes again. Its followers went back with it.
func (c *consumer) detach(lead, r *run, now time.Duration) {
	l := r.lane
	lead.each(func(m *run) {
		if m.lane == l {
			m.lane = nil
		}
	})
	c.lanes.forget(l, r.fetch)
	c.lanes.advance(l, now)
}
