package drivertest

import (
	"time"

	"github.com/ferrymq/ferry/driver"
)

func (s *sub) drain() { s.t.Helper(); s.t.ok(s.Drain(s.t.ctx()), "Drain") }

// drainEndsReceiving: a draining member is given nothing more, and keeps what it has.
func drainEndsReceiving(t *T) {
	s := t.shortLease()
	t.put("a", "b")
	ds := s.expect("a", "b")
	waiting := s.inBackground()
	t.pass(quiet)
	s.drain()
	t.wantErr(<-waiting, driver.ErrClosed, "Receive that waited while its subscription was drained")
	s.extend(ds...) // and again below: what stands between must not use up a lease
	t.put("c")
	_, err := s.Receive(t.ctx(), 1)
	t.wantErr(err, driver.ErrClosed, "Receive after Drain")
	s.drain()
	s.extend(ds...)
	s.begin(ds...)
	for range 3 {
		t.pass(t.Caps.MinLease / 2)
		s.extend(ds...)
	}
	s.ack(ds[0])
	s.retry(ds[1], 0)
	s.leave()
	b := t.subscribe(driver.SubscribeOptions{Instance: "2"})
	for _, d := range b.take(2) {
		if d.Attempt == 2 {
			t.counted(d, 2, 1, driver.CauseRetry)
		} else {
			t.counted(d, 1, 1, driver.CauseFirst)
		}
		b.ack(d)
	}
	t.counts(0, 0, 0, 0)
}

// drainPassesTheRestOn: what a draining member does not hold goes to the others while it still works.
func drainPassesTheRestOn(t *T) {
	a := t.subscribe(driver.SubscribeOptions{Instance: "1"})
	t.put("first")
	held := a.one()
	b := t.subscribe(driver.SubscribeOptions{Instance: "2"})
	a.drain()
	bodies := numbered("m", 40)
	t.put(bodies...)
	start := time.Now()
	got := map[string]bool{}
	for len(got) < t.elsewhere(held, bodies) {
		d := b.one()
		got[string(d.Body)] = true
		b.ack(d)
	}
	if waited := time.Since(start); waited > longLease/2 {
		t.Errorf("the rest came after %v: something waited for a lease", waited)
	}
	a.ack(held)
	for len(got) < len(bodies) {
		d := b.one()
		got[string(d.Body)] = true
		b.ack(d)
	}
	a.leave()
}

// elsewhere counts the messages that nothing reserves for the holder of d.
func (t *T) elsewhere(d *driver.Delivery, all []string) int {
	t.Helper()
	if t.Caps.Parallel == driver.ParallelUnbounded {
		return len(all)
	}
	n := 0
	for _, e := range t.browse(driver.StateReady) {
		if e.Ref.Partition != d.Ref.Partition {
			n++
		}
	}
	return n
}

// unseenKeepsItsCause: what is given back before a handler saw it is delivered as if for the first time.
func unseenKeepsItsCause(t *T) {
	s := t.consumer()
	t.put("a")
	unseen := func(d *driver.Delivery) driver.Settlement {
		return driver.Settlement{Delivery: d, Outcome: driver.Release, Unseen: true}
	}
	d := s.one()
	s.settle(unseen(d))
	d = s.one()
	t.counted(d, 1, 1, driver.CauseFirst)
	s.retry(d, 0)
	s.settle(unseen(s.one()))
	d = s.one()
	t.counted(d, 2, 1, driver.CauseRetry)
	s.release(d)
	s.settle(unseen(s.one()))
	d = s.one()
	t.counted(d, 2, 1, driver.CauseReleased)
	s.ack(d)
}

// unseenTailKeepsItsCause: what goes back behind a message that failed has not been seen either.
func unseenTailKeepsItsCause(t *T) {
	s := t.consumerWith(driver.SubscribeOptions{MaxRun: 3})
	t.putKeyed("k", "a1", "a2", "a3")
	s.retry(s.expect("a1", "a2", "a3")[0], 0)
	ds := s.expect("a1", "a2", "a3")
	t.counted(ds[0], 2, 1, driver.CauseRetry)
	t.counted(ds[1], 1, 1, driver.CauseFirst)
	s.ack(ds[0])
	s.retry(ds[1], 0)
	ds = s.expect("a2", "a3")
	t.counted(ds[0], 2, 1, driver.CauseRetry)
	t.counted(ds[1], 1, 1, driver.CauseFirst)
	s.release(ds[0])
	ds = s.expect("a2", "a3")
	t.counted(ds[0], 2, 1, driver.CauseReleased)
	t.counted(ds[1], 1, 1, driver.CauseFirst)
	s.ack(ds...)
}
