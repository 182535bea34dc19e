package drivertest

import (
	"time"

	"github.com/ferrymq/ferry/driver"
)

func claimsCountNothing(t *T) {
	s := t.consumer()
	t.put("a")
	d := s.one()
	t.counted(d, 1, 1, driver.CauseFirst)
	for range 5 {
		s.release(d)
		d = s.one()
		t.counted(d, 1, 1, driver.CauseReleased)
	}
	if n := t.groupStats(driver.DefaultGroup).Redelivered; n != 0 {
		t.Errorf("Redelivered is %d although no lease was lost", n)
	}
}

func releaseToTheHead(t *T) {
	s := t.consumer()
	t.put(numbered("a", 5)...)
	ds := s.expect("a1", "a2", "a3")
	s.release(ds[1], ds[2], ds[0]) // any order: each goes to its old place
	s.expect("a1", "a2", "a3", "a4", "a5")
}

func releaseOfAKeyToItsHead(t *T) {
	s := t.consumer()
	t.putKeyed("k", "a1", "a2")
	t.putKeyed("j", "b1", "b2")
	for range 3 {
		ds := s.take(2)
		t.equal(sorted(bodies(ds)), []string{"a1", "b1"}, "heads")
		s.release(ds...)
	}
}

func parkCountsNothing(t *T) {
	s := t.consumer()
	t.put("a")
	start := time.Now()
	t.before(start.Add(unit), func() {
		s.park(s.one(), unit)
		t.counts(0, 0, 1, 0)
		s.idle()
	})
	d := s.one()
	t.onTime(start.Add(unit), "parked message")
	t.counted(d, 1, 1, driver.CauseReleased)
}

func parkKeepsItsPlace(t *T) {
	if t.Caps.Counts != driver.CountsExact {
		t.Skip("whether it is due again cannot be seen in estimates")
	}
	s := t.consumer()
	t.put("a1", "a2", "a3")
	s.park(s.expect("a1")[0], unit)
	t.until("the parked message is due", func() bool { return t.groupStats(driver.DefaultGroup).Ready == 3 })
	s.expect("a1", "a2", "a3")
}

func parkBlocksAStrictKey(t *T) {
	s := t.consumer()
	t.putKeyed("k", "a1", "a2")
	t.putKeyed("j", "b1")
	ds := s.take(2)
	t.before(time.Now().Add(unit), func() {
		for _, d := range ds {
			if d.Key == "k" {
				s.park(d, unit)
			} else {
				s.ack(d)
			}
		}
		s.idle()
	})
	d := s.expect("a1")[0]
	t.counted(d, 1, 1, driver.CauseReleased)
	s.ack(d)
	s.expect("a2")
}

func parkOfARunReturnsTheTail(t *T) {
	s := t.consumerWith(driver.SubscribeOptions{MaxRun: 3})
	t.putKeyed("k", "a1", "a2", "a3")
	ds := s.expect("a1", "a2", "a3")
	t.before(time.Now().Add(unit), func() {
		s.park(ds[0], unit)
		s.refused(driver.Settlement{Delivery: ds[1], Outcome: driver.Ack})
		s.idle()
	})
	again := s.expect("a1", "a2", "a3")
	t.counted(again[0], 1, 1, driver.CauseReleased)
	for _, d := range again[1:] {
		t.counted(d, 1, 1, driver.CauseFirst)
	}
}

func afterBelowZeroIsNow(t *T) {
	s := t.consumer()
	t.put("a")
	s.park(s.one(), -time.Hour)
	d := s.one()
	t.counted(d, 1, 1, driver.CauseReleased)
	s.retry(d, -time.Hour)
	t.counted(s.one(), 2, 1, driver.CauseRetry)
}
