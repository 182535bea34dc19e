package drivertest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ferrymq/ferry/driver"
)

func keyOrder(t *T) {
	s := t.subscribe(driver.SubscribeOptions{})
	for i := range 6 {
		for k := range 5 {
			t.putKeyed(fmt.Sprint(k), fmt.Sprint(i))
		}
	}
	got := map[string][]string{}
	for _, d := range s.gather(30) {
		got[d.Key] = append(got[d.Key], string(d.Body))
	}
	for k := range 5 {
		t.equal(got[fmt.Sprint(k)], []string{"0", "1", "2", "3", "4", "5"}, "order of one key")
	}
}

func keyOrderInOneBatch(t *T) {
	s := t.subscribe(driver.SubscribeOptions{})
	t.putKeyed("k", numbered("a", 20)...)
	t.equal(bodies(s.gather(20)), numbered("a", 20), "order of one key")
}

// keyOrderAcrossConsumers: whoever runs a message of a key, it starts after the one before it was settled.
func keyOrderAcrossConsumers(t *T) {
	const keys, each = 6, 15
	var subs []*sub
	for i := range 3 {
		subs = append(subs, t.subscribe(driver.SubscribeOptions{Instance: fmt.Sprint(i), MaxRun: 1 + i}))
	}
	for i := range each {
		for k := range keys {
			t.putKeyed(fmt.Sprint(k), fmt.Sprint(i))
		}
	}
	var mu sync.Mutex
	next := map[string]int{}
	t.workers(subs, keys*each, func(_ *sub, d *driver.Delivery) driver.Outcome {
		mu.Lock()
		defer mu.Unlock()
		if want := fmt.Sprint(next[d.Key]); string(d.Body) != want {
			t.Errorf("key %s: message %s ran while message %s was next", d.Key, d.Body, want)
		}
		next[d.Key]++
		return driver.Ack
	})
}

// manyReceiversOfOneSubscription: all methods may be called concurrently.
func manyReceiversOfOneSubscription(t *T) {
	s := t.subscribe(driver.SubscribeOptions{})
	for i := range 20 {
		for k := range 5 {
			t.putKeyed(fmt.Sprint(k), fmt.Sprint(i))
		}
	}
	var mu sync.Mutex
	next := map[string]int{}
	t.workers([]*sub{s, s, s, s}, 100, func(_ *sub, d *driver.Delivery) driver.Outcome {
		mu.Lock()
		defer mu.Unlock()
		if want := fmt.Sprint(next[d.Key]); string(d.Body) != want {
			t.Errorf("key %s: message %s ran while message %s was next", d.Key, d.Body, want)
		}
		next[d.Key]++
		return driver.Ack
	})
	t.counts(0, 0, 0, 0)
}

func oneInFlightPerKey(t *T) {
	t.oneLane(topic)
	a, b := t.subscribe(driver.SubscribeOptions{Instance: "1"}), t.subscribe(driver.SubscribeOptions{Instance: "2"})
	t.putKeyed("k", "a1", "a2")
	s, idle, ds := t.claimEither(a, b)
	t.equal(bodies(ds), []string{"a1"}, "deliveries of one key")
	idle.idle()
	s.idle()
	s.ack(ds...)
	s, _ = t.owner(a, b)
	s.expect("a2")
}

// claimEither claims with the consumer that gets something: where there are partitions either may own the only one, and
// it may move as long as the second one is new.
func (t *T) claimEither(a, b *sub) (owner, other *sub, ds []*driver.Delivery) {
	t.Helper()
	if t.Caps.Parallel == driver.ParallelUnbounded {
		return a, b, a.claim()
	}
	for ctx := t.ctx(); ; a, b = b, a {
		t.ok(ctx.Err(), "waiting for an owner")
		if ds, err := a.Receive(t.within(quiet), 100); err == nil {
			return a, b, ds
		}
	}
}

// owner returns the consumer that a message comes to, and the other one. The message is released.
func (t *T) owner(a, b *sub) (owner, other *sub) {
	t.Helper()
	for found := false; !found; {
		for range 2 {
			ctx := t.within(quiet)
			ds, err := a.Receive(ctx, 1)
			if err == nil {
				a.release(ds...)
				return a, b
			}
			a, b = b, a
		}
		t.ok(t.ctx().Err(), "waiting for an owner")
	}
	return a, b
}

func keysInParallel(t *T) {
	s := t.subscribe(driver.SubscribeOptions{})
	for k := range 10 {
		t.putKeyed(fmt.Sprint(k), fmt.Sprint("a", k), fmt.Sprint("b", k))
	}
	ds := s.take(10)
	for _, d := range ds {
		t.equal(string(d.Body), "a"+d.Key, "head of the key")
	}
	s.idle()
	s.ack(ds...)
	for _, d := range s.take(10) {
		t.equal(string(d.Body), "b"+d.Key, "second of the key")
	}
}

func strictFollowersWait(t *T) {
	s := t.subscribe(driver.SubscribeOptions{Order: driver.Strict})
	t.putKeyed("k", "a1", "a2", "a3")
	d := s.expect("a1")[0]
	t.before(time.Now().Add(unit), func() {
		s.retry(d, unit)
		s.idle()
		t.counts(2, 0, 1, 0)
	})
	d = s.expect("a1")[0]
	t.counted(d, 2, 1, driver.CauseRetry)
	s.ack(d)
	t.equal(bodies(s.gather(2)), []string{"a2", "a3"}, "followers")
}

func relaxedFollowersPass(t *T) {
	s := t.subscribe(driver.SubscribeOptions{Order: driver.Relaxed})
	t.putKeyed("k", "a1", "a2", "a3")
	d := s.expect("a1")[0]
	t.before(time.Now().Add(unit), func() { // a1 comes again, before a3, once it is due
		s.retry(d, unit)
		d = s.expect("a2")[0]
		s.idle() // still one at a time
		s.ack(d)
		d = s.expect("a3")[0]
	})
	s.idleFor(2 * unit) // a1 is due, and waits for a3
	s.ack(d)
	d = s.expect("a1")[0]
	t.counted(d, 2, 1, driver.CauseRetry)
}

func failingKeyBlocksNoOther(t *T) {
	s := t.subscribe(driver.SubscribeOptions{})
	t.putKeyed("bad", "x1", "x2")
	s.retry(s.expect("x1")[0], 20*unit)
	for k := range 5 {
		t.putKeyed(fmt.Sprint(k), "ok1", "ok2")
	}
	t.put("free")
	for _, d := range s.gather(11) {
		if d.Key == "bad" {
			t.Fatalf("%s of the failing key was delivered", d.Body)
		}
	}
	s.idle()
}

func keyGoesOnAfterDeathAndDrop(t *T) {
	s := t.subscribe(driver.SubscribeOptions{})
	t.putKeyed("k", "a1", "a2", "a3")
	s.bury(s.expect("a1")[0])
	s.settle(driver.Settlement{Delivery: s.expect("a2")[0], Outcome: driver.Drop})
	s.ack(s.expect("a3")...)
	t.counts(0, 0, 0, 1)
	if g := t.groupStats(driver.DefaultGroup); t.Caps.Counts == driver.CountsExact && (g.Acked != 1 || g.Dropped != 1) {
		t.Errorf("Acked %d, Dropped %d; want 1 and 1", g.Acked, g.Dropped)
	}
}

func keyOrderBeatsPriority(t *T) {
	s := t.subscribe(driver.SubscribeOptions{StrictPriority: true})
	t.publish(t.msg("a1", key("k"), prio(driver.Low)), t.msg("a2", key("k"), prio(driver.Urgent)), t.msg("a3", key("k")))
	t.equal(bodies(s.gather(3)), []string{"a1", "a2", "a3"}, "order of the key")
}

func keyRunsAtItsHeadsPriority(t *T) {
	if t.Caps.KeyedPriority != driver.PriorityEverywhere {
		t.Skip("priorities of keyed messages reach no further than the fetch window")
	}
	s := t.consumerWith(driver.SubscribeOptions{StrictPriority: true})
	t.ok(t.Pause(t.ctx(), topic, "", true), "Pause")
	t.publish(t.msg("k1", key("k"), prio(driver.Low)), t.msg("k2", key("k"), prio(driver.Urgent)),
		t.msg("normal"), t.msg("j1", key("j"), prio(driver.High)))
	t.ok(t.Pause(t.ctx(), topic, "", false), "Pause")
	t.equal(bodies(s.gather(4)), []string{"j1", "normal", "k1", "k2"}, "order")
}

func runInOrder(t *T) {
	s := t.subscribe(driver.SubscribeOptions{MaxRun: 3})
	t.putKeyed("k", numbered("a", 5)...)
	ds := s.claim()
	t.equal(bodies(ds), []string{"a1", "a2", "a3"}, "run")
	s.idle()
	s.ack(ds[0])
	s.idle() // while any of the run is held
	s.ack(ds[1:]...)
	s.ack(s.expect("a4", "a5")...)
}

// runIsOneClaim: a run is what one Receive took of a key, however few; the rest waits until it is settled.
func runIsOneClaim(t *T) {
	s := t.subscribe(driver.SubscribeOptions{MaxRun: 3})
	t.putKeyed("k", "a1")
	d := s.expect("a1")[0]
	t.putKeyed("k", "a2", "a3")
	s.idle()
	s.ack(d)
	s.expect("a2", "a3")
}

// runStaysTogether: while one consumer holds a run of a key, nobody else gets a message of that key.
func runStaysTogether(t *T) {
	if t.Caps.Parallel != driver.ParallelUnbounded {
		t.Skip("a second consumer may take over the partition")
	}
	t.oneLane(topic)
	a := t.subscribe(driver.SubscribeOptions{Instance: "1", MaxRun: 2})
	t.putKeyed("k", numbered("a", 4)...)
	ds := a.expect("a1", "a2")
	b := t.subscribe(driver.SubscribeOptions{Instance: "2", MaxRun: 2})
	b.idle()
	a.ack(ds[0])
	b.idle()
	a.idle()
	a.ack(ds[1])
	t.equal(bodies(b.take(2)), []string{"a3", "a4"}, "the next run")
}

func retryInARunReturnsTheTail(t *T) {
	s := t.subscribe(driver.SubscribeOptions{MaxRun: 3})
	t.putKeyed("k", numbered("a", 4)...)
	ds := s.expect("a1", "a2", "a3")
	errs := s.errs(driver.Settlement{Delivery: ds[0], Outcome: driver.Ack},
		driver.Settlement{Delivery: ds[1], Outcome: driver.Retry, Failure: failure("try again")},
		driver.Settlement{Delivery: ds[2], Outcome: driver.Ack})
	t.ok(errs[0], "Ack of the head")
	t.ok(errs[1], "Retry in the middle")
	t.wantErr(errs[2], driver.ErrLeaseLost, "Ack of the tail after the retry, in the same call")
	again := s.expect("a2", "a3", "a4")
	t.counted(again[0], 2, 1, driver.CauseRetry)
	t.counted(again[1], 1, 1, driver.CauseFirst)
	t.counted(again[2], 1, 1, driver.CauseFirst)
	for _, o := range []driver.Outcome{driver.Ack, driver.Retry, driver.Dead, driver.Release, driver.Drop} {
		s.refused(driver.Settlement{Delivery: ds[2], Outcome: o})
	}
	s.ack(again...)
}

// retryBehindADeathReturnsTheTail: in one call, too, nothing of a key is returned by itself behind an outcome that
// returns it.
func retryBehindADeathReturnsTheTail(t *T) {
	s := t.subscribe(driver.SubscribeOptions{MaxRun: 4})
	t.putKeyed("k", numbered("a", 4)...)
	ds := s.expect("a1", "a2", "a3", "a4")
	errs := s.errs(driver.Settlement{Delivery: ds[0], Outcome: driver.Dead, Failure: failure("no use")},
		driver.Settlement{Delivery: ds[1], Outcome: driver.Retry, Failure: failure("try again")},
		driver.Settlement{Delivery: ds[2], Outcome: driver.Ack},
		driver.Settlement{Delivery: ds[3], Outcome: driver.Release})
	t.ok(errs[0], "death of the head")
	t.ok(errs[1], "Retry behind it")
	t.wantErr(errs[2], driver.ErrLeaseLost, "Ack behind the retry, in the same call")
	t.wantErr(errs[3], driver.ErrLeaseLost, "Release behind the retry, in the same call")
	again := s.expect("a2", "a3", "a4")
	t.counted(again[0], 2, 1, driver.CauseRetry)
	t.counted(again[1], 1, 1, driver.CauseFirst)
	t.counted(again[2], 1, 1, driver.CauseFirst)
	s.ack(again...)
}

// uncounted demands a redelivery that counted neither an attempt nor a delivery, and says why it happened.
func (t *T) uncounted(d *driver.Delivery) {
	t.Helper()
	if d.Attempt != 1 || d.Deliveries != 1 || !slices.Contains([]driver.Cause{driver.CauseReleased, driver.CauseRebalance},
		d.Cause) {
		t.Fatalf("%q came back with attempt %d, deliveries %d, cause %s; want it released, uncounted", d.Body, d.Attempt,
			d.Deliveries, d.Cause)
	}
}

func retryOfARunBlocksItsTail(t *T) {
	s := t.subscribe(driver.SubscribeOptions{MaxRun: 3})
	t.putKeyed("k", numbered("a", 3)...)
	ds := s.expect("a1", "a2", "a3")
	t.before(time.Now().Add(unit), func() {
		s.retry(ds[0], unit)
		s.refused(driver.Settlement{Delivery: ds[1], Outcome: driver.Ack})
		t.counts(2, 0, 1, 0)
		s.idle()
	})
	t.counted(s.expect("a1", "a2", "a3")[0], 2, 1, driver.CauseRetry)
}

func releaseOfARunReturnsTheTail(t *T) {
	s := t.subscribe(driver.SubscribeOptions{MaxRun: 3})
	t.putKeyed("k", numbered("a", 3)...)
	ds := s.expect("a1", "a2", "a3")
	s.release(ds[1])
	s.refused(driver.Settlement{Delivery: ds[2], Outcome: driver.Ack})
	s.idle() // the head is still held
	s.ack(ds[0])
	again := s.expect("a2", "a3")
	t.counted(again[0], 1, 1, driver.CauseReleased)
	t.counted(again[1], 1, 1, driver.CauseFirst)
}

// outcomesStayInOrder: behind an outcome that is not applied none of its key is, or it would come again after its
// followers were done. Other keys do not notice.
func outcomesStayInOrder(t *T) {
	s := t.subscribe(driver.SubscribeOptions{MaxRun: 4})
	t.putKeyed("k", numbered("a", 4)...)
	ds := s.expect(numbered("a", 4)...)
	t.putKeyed("other", "b1")
	b := s.expect("b1")[0]
	bad := []*driver.Message{t.msg("bad", to(other), func(m *driver.Message) { m.TTL = -1 })}
	for n, x := range []driver.Settlement{
		{Delivery: ds[0], Outcome: driver.Drop + 1},
		{Delivery: ds[0], Outcome: driver.Ack, Emit: bad},
	} {
		behind := []driver.Settlement{
			{Delivery: ds[1], Outcome: driver.Ack},
			{Delivery: ds[2], Outcome: driver.Ack, Emit: []*driver.Message{t.msg("good", to(other))}},
			{Delivery: ds[3], Outcome: driver.Retry, Failure: failure("try again")},
		}
		last := driver.Settlement{Delivery: b, Outcome: driver.Ack}
		errs := s.errs(slices.Concat([]driver.Settlement{x}, behind[n:], []driver.Settlement{last})...)
		t.refuses(errs[0], driver.ErrInvalid, "Settle of what cannot be")
		for _, err := range errs[1 : len(errs)-1] {
			t.refuses(err, driver.ErrNotApplied, "Settle behind it")
		}
		if n == 0 {
			t.ok(errs[len(errs)-1], "Settle of another key")
		}
	}
	t.onlyTopics(topic)
	s.ack(ds...) // all of them are held as before
	t.counts(0, 0, 0, 0)
}
