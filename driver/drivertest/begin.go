package drivertest

import (
	"fmt"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// begin demands that the start of every handler is recorded.
func (s *sub) begin(ds ...*driver.Delivery) {
	s.t.Helper()
	for i, err := range s.Begin(s.t.ctx(), ds) {
		s.leaseOver(ds[i], err, "Begin")
		s.t.ok(err, fmt.Sprintf("Begin of %q", ds[i].Body))
	}
}

// losses is how many leases a case can afford to lose: where time is real each takes a whole one.
func (t *T) losses(virtual int) int {
	if t.Virtual {
		return virtual
	}
	return 3
}

// lostOnce publishes a message and returns its delivery after the first lost lease, which always counts.
func (t *T) lostOnce(s *sub) *driver.Delivery {
	t.Helper()
	t.put("a")
	d := s.lose(s.one())[0]
	t.counted(d, 1, 2, driver.CauseLeaseExpired)
	return d
}

// unseenLossesDoNotCount: what no handler ever saw cannot die of its deliveries.
func unseenLossesDoNotCount(t *T) {
	s := t.shortLease()
	d := t.lostOnce(s)
	n := t.losses(20)
	for range n {
		d = s.lose(d)[0]
		t.counted(d, 1, 2, driver.CauseLeaseExpired)
	}
	t.before(d.LeaseUntil, func() {
		if g := t.groupStats(driver.DefaultGroup); t.Caps.Counts == driver.CountsExact && g.Redelivered != uint64(n+1) {
			t.Errorf("Redelivered is %d after %d lost leases", g.Redelivered, n+1)
		}
	})
	s.ack(d)
}

// begunLossesCount: a holder that began and never spoke again may have been killed by the message.
func begunLossesCount(t *T) {
	s := t.shortLease()
	d := t.lostOnce(s)
	for n := 3; n < 3+t.losses(20); n++ {
		s.begin(d)
		d = s.lose(d)[0]
		t.counted(d, 1, n, driver.CauseLeaseExpired)
	}
	s.retry(d, 0)
	last := s.one()
	t.counted(last, 2, d.Deliveries, driver.CauseRetry)
	s.ack(last)
}

func beginOfAFirstDelivery(t *T) {
	s := t.shortLease()
	t.put("a")
	old := s.one()
	s.begin(old)
	d := s.lose(old)[0]
	t.counted(d, 1, 2, driver.CauseLeaseExpired)
	t.wantErr(s.Extend(t.ctx(), []*driver.Delivery{old})[0], driver.ErrLeaseLost, "Extend of a lost lease")
	s.release(d)
	t.counted(s.one(), 1, 1, driver.CauseReleased)
}

// beginIsOfOneDelivery: the next delivery has not begun because an earlier one had.
func beginIsOfOneDelivery(t *T) {
	s := t.shortLease()
	d := t.lostOnce(s)
	s.begin(d)
	s.release(d)
	d = s.lose(s.one())[0]
	t.counted(d, 1, 2, driver.CauseLeaseExpired)
	s.ack(d)
}

func beginOfManyAndOfTheLost(t *T) {
	s := t.shortLease()
	t.put("a", "b", "c")
	old := s.expect("a", "b", "c")
	held := s.lose(old...)
	errs := s.Begin(t.ctx(), []*driver.Delivery{held[0], old[1], held[1], held[1], old[2]})
	t.equal(len(errs), 5, "number of errors")
	for i, want := range []error{nil, driver.ErrLeaseLost, nil, nil, driver.ErrLeaseLost} {
		if want == nil {
			t.ok(errs[i], fmt.Sprint("Begin number ", i))
			continue
		}
		t.wantErr(errs[i], want, fmt.Sprint("Begin number ", i, " of a lost lease"))
	}
	s.ack(held[0])
	t.wantErr(s.Begin(t.ctx(), held[:1])[0], driver.ErrLeaseLost, "Begin of a settled delivery")
	again := s.take(2)
	for _, d := range again {
		want := 2 // its first loss
		if d.ID == held[1].ID {
			want = 3
		}
		t.counted(d, 1, want, driver.CauseLeaseExpired)
	}
	s.ack(again...)
}

// beginKeepsTheLease: it neither shortens nor extends it.
func beginKeepsTheLease(t *T) {
	s := t.shortLease()
	t.put("a")
	d := s.one()
	s.idleFor(t.Caps.MinLease / 2)
	s.begin(d)
	before := time.Now()
	t.counted(s.one(), 1, 2, driver.CauseLeaseExpired)
	if waited, most := time.Since(before), t.Caps.MinLease/2+time.Second+t.Late+t.stalledSince(before); waited > most {
		t.Errorf("lost %v after it began, half a lease after its claim: later than %v", waited, most)
	}
}

// lateWord makes a case of a holder that speaks of a lost delivery that had begun: its count is taken back, once.
func lateWord(speak func(t *T, s *sub, d *driver.Delivery)) func(*T) {
	return func(t *T) {
		s := t.shortLease()
		old := t.lostOnce(s)
		s.begin(old)
		d := s.lose(old)[0]
		t.counted(d, 1, 3, driver.CauseLeaseExpired)
		speak(t, s, old)
		s.release(d)
		d = s.one()
		t.counted(d, 1, 2, driver.CauseReleased)
		speak(t, s, old)
		s.release(d)
		d = s.one()
		t.counted(d, 1, 2, driver.CauseReleased)
		s.ack(d)
	}
}

var lateExtend = lateWord(func(t *T, s *sub, d *driver.Delivery) {
	t.wantErr(s.Extend(t.ctx(), []*driver.Delivery{d})[0], driver.ErrLeaseLost, "Extend of a lost lease")
})

var lateSettle = lateWord(func(_ *T, s *sub, d *driver.Delivery) {
	s.refused(driver.Settlement{Delivery: d, Outcome: driver.Ack})
})

// lateClose: a holder that leaves in order lives, whatever it held.
func lateClose(t *T) {
	if t.Caps.Parallel != driver.ParallelUnbounded {
		t.Skip("a second consumer may take over the partition before the lease ends")
	}
	s := t.shortLease()
	old := t.lostOnce(s)
	s.begin(old)
	b := t.subscribe(driver.SubscribeOptions{Instance: "2"})
	d := b.lose(old)[0]
	t.counted(d, 1, 3, driver.CauseLeaseExpired)
	s.leave()
	b.release(d)
	t.counted(b.one(), 1, 2, driver.CauseReleased)
}

// lateWordBeforeRedelivery: a lost lease is lost even while nobody else has the message, and its holder lives all the
// same.
func lateWordBeforeRedelivery(t *T) {
	if t.Caps.Counts != driver.CountsExact {
		t.Skip("the loss of the lease cannot be seen in estimates")
	}
	s := t.shortLease()
	d := t.lostOnce(s)
	s.begin(d)
	t.pause("", true)
	t.until("the lease ends", func() bool { return t.groupStats(driver.DefaultGroup).Inflight == 0 })
	s.refused(driver.Settlement{Delivery: d, Outcome: driver.Ack})
	t.pause("", false)
	t.counted(s.one(), 1, 2, driver.CauseLeaseExpired)
}

// lateWordsOfSeveral: each holder takes back its own count.
func lateWordsOfSeveral(t *T) {
	s := t.shortLease()
	d := t.lostOnce(s)
	var old []*driver.Delivery
	for range 3 {
		s.begin(d)
		old = append(old, d)
		d = s.lose(d)[0]
	}
	t.counted(d, 1, 5, driver.CauseLeaseExpired)
	s.Extend(t.ctx(), []*driver.Delivery{old[2], old[0]})
	s.release(d)
	d = s.one()
	t.counted(d, 1, 3, driver.CauseReleased)
	s.refused(driver.Settlement{Delivery: old[1], Outcome: driver.Retry})
	s.release(d)
	t.counted(s.one(), 1, 2, driver.CauseReleased)
}

// lateWordOfTheUnseen: a holder that had not begun takes nothing back: its loss counted as the first, or not at all.
func lateWordOfTheUnseen(t *T) {
	s := t.shortLease()
	t.put("a")
	old := s.one()
	d := s.lose(old)[0]
	s.refused(driver.Settlement{Delivery: old, Outcome: driver.Ack})
	s.release(d)
	t.counted(s.one(), 1, 2, driver.CauseReleased)
}

// lateWordOfTheDead: what is settled or dead stays as it is.
func lateWordOfTheDead(t *T) {
	s := t.shortLease()
	old := t.lostOnce(s)
	s.begin(old)
	s.bury(s.lose(old)[0])
	s.refused(driver.Settlement{Delivery: old, Outcome: driver.Ack})
	t.equal(t.deadLetter().Deliveries, 3, "deliveries of the dead letter")
	t.counts(0, 0, 0, 1)
	t.move(driver.Move{Target: driver.Target{Topic: topic, Group: driver.DefaultGroup, ID: old.ID}})
	s.refused(driver.Settlement{Delivery: old, Outcome: driver.Ack})
	d := s.one()
	t.counted(d, 1, 1, driver.CauseReplay)
	s.ack(d)
}

// restartKeepsDeliveries: counts, what was taken back of them, and that the next loss is not the first.
func restartKeepsDeliveries(t *T) {
	t.survives()
	s := t.shortLease()
	old := t.lostOnce(s)
	s.begin(old)
	d := s.lose(old)[0]
	t.counted(d, 1, 3, driver.CauseLeaseExpired)
	s.refused(driver.Settlement{Delivery: old, Outcome: driver.Ack})
	s.release(d)
	s.leave()
	t.restart()
	s = t.subscribe(driver.SubscribeOptions{Lease: t.Caps.MinLease})
	d = s.one()
	t.equal(d.Deliveries, 2, "deliveries after one was taken back, and a restart")
	d = s.lose(d)[0]
	t.counted(d, 1, 2, driver.CauseLeaseExpired)
	s.begin(d)
	d = s.lose(d)[0]
	t.counted(d, 1, 3, driver.CauseLeaseExpired)
	s.ack(d)
}
