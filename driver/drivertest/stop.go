package drivertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ferrymq/ferry/driver"
)

func closeReturnsWhatIsHeld(t *T) {
	a := t.consumer()
	t.put(numbered("a", 5)...)
	a.expect("a1", "a2", "a3")
	start := time.Now()
	a.leave()
	b := t.subscribe(driver.SubscribeOptions{Instance: "2"})
	ds := b.expect("a1", "a2", "a3", "a4", "a5")
	for _, d := range ds[:3] {
		t.uncounted(d)
	}
	if waited := time.Since(start); waited > longLease/2 {
		t.Errorf("what was held came back after %v: something waited for a lease", waited)
	}
}

func closeReturnsARun(t *T) {
	a := t.consumerWith(driver.SubscribeOptions{MaxRun: 3})
	t.putKeyed("k", numbered("a", 4)...)
	a.expect("a1", "a2", "a3")
	a.leave()
	t.equal(bodies(t.subscribe(driver.SubscribeOptions{Instance: "2"}).gather(4)), numbered("a", 4),
		"order after the hand-over")
}

func closeLeavesTheGroup(t *T) {
	a, b := t.subscribe(driver.SubscribeOptions{Instance: "1"}), t.subscribe(driver.SubscribeOptions{Instance: "2"})
	t.equal(t.groupStats(driver.DefaultGroup).Consumers, 2, "consumers")
	a.leave()
	t.equal(t.groupStats(driver.DefaultGroup).Consumers, 1, "consumers after one left")
	b.leave()
	t.equal(t.groupStats(driver.DefaultGroup).Consumers, 0, "consumers after both left")
}

// consumersOfOthers: a process that consumes nothing sees that another does, and until when.
func consumersOfOthers(t *T) {
	if t.Beside == nil {
		t.Skip("a store belongs to one process")
	}
	t.oneLane(topic)
	d := t.Beside(t.TB, t.Driver)
	s, err := d.Subscribe(t.ctx(), driver.SubscribeOptions{Topic: topic, Instance: "elsewhere", Lease: longLease})
	t.ok(err, "Subscribe beside")
	t.equal(t.groupStats(driver.DefaultGroup).Consumers, 1, "consumers, one of another process")
	mine := t.subscribe(driver.SubscribeOptions{Instance: "1"})
	t.equal(t.groupStats(driver.DefaultGroup).Consumers, 2, "consumers, one of each process")
	st, err := d.Stats(t.ctx(), topic)
	t.ok(err, "Stats beside")
	t.equal(st.Groups[0].Consumers, 2, "consumers as the other process sees them")
	mine.leave()
	t.equal(t.groupStats(driver.DefaultGroup).Consumers, 1, "consumers after ours left")
	t.ok(s.Close(t.ctx()), "Close beside")
	t.equal(t.groupStats(driver.DefaultGroup).Consumers, 0, "consumers after both left")
	t.ok(d.Close(t.ctx()), "Close of the driver beside")
}

func closedSubscription(t *T) {
	s := t.consumer()
	t.put("a")
	d := s.one()
	s.leave()
	_, err := s.Receive(t.ctx(), 1)
	t.wantErr(err, driver.ErrClosed, "Receive after Close")
	err = s.errs(driver.Settlement{Delivery: d, Outcome: driver.Ack})[0]
	if !errors.Is(err, driver.ErrClosed) && !errors.Is(err, driver.ErrLeaseLost) {
		t.Fatalf("Settle after Close: got error %v, want ErrClosed or ErrLeaseLost", err)
	}
	t.counts(1, 0, 0, 0)
}

// inBackground receives in a goroutine that ends with the case.
func (s *sub) inBackground() <-chan error {
	result := make(chan error, 1)
	ctx := s.t.ctx()
	go func() {
		_, err := s.Receive(ctx, 1)
		result <- err
	}()
	return result
}

func closeEndsAWaitingReceive(t *T) {
	s := t.consumer()
	waiting := s.inBackground()
	t.pass(quiet)
	s.leave()
	t.wantErr(<-waiting, driver.ErrClosed, "Receive that waited while its subscription was closed")
}

func driverCloseEndsAWaitingReceive(t *T) {
	s := t.consumer()
	waiting := s.inBackground()
	t.pass(quiet)
	t.ok(t.Close(t.ctx()), "Close")
	t.wantErr(<-waiting, driver.ErrClosed, "Receive that waited while the driver was closed")
}

func closedDriver(t *T) {
	s := t.consumer()
	t.put("a")
	t.ok(t.Close(t.ctx()), "Close")
	t.ok(t.Close(t.ctx()), "second Close")
	rs, err := t.Publish(t.ctx(), t.msgs([]string{"b"}), driver.PublishOptions{})
	t.wantErr(err, driver.ErrClosed, "Publish after Close")
	if len(rs) == 1 {
		t.wantErr(rs[0].Err, driver.ErrClosed, "receipt after Close")
	}
	_, err = s.Receive(t.ctx(), 1)
	t.wantErr(err, driver.ErrClosed, "Receive after Close of the driver")
	_, err = t.Subscribe(t.ctx(), driver.SubscribeOptions{Topic: topic, Instance: "2", Lease: longLease})
	t.wantErr(err, driver.ErrClosed, "Subscribe after Close")
	_, err = t.Stats(t.ctx(), topic)
	t.wantErr(err, driver.ErrClosed, "Stats after Close")
	_, err = t.Topics(t.ctx())
	t.wantErr(err, driver.ErrClosed, "Topics after Close")
	_, err = t.Usage(t.ctx())
	t.wantErr(err, driver.ErrClosed, "Usage after Close")
	_, err = t.Purge(t.ctx(), topic, "")
	t.wantErr(err, driver.ErrClosed, "Purge after Close")
	t.wantErr(t.EnsureTopic(t.ctx(), other, driver.TopicConfig{}), driver.ErrClosed, "EnsureTopic after Close")
}

// callsBesideClose: calls that are under way while the driver is closed end as they would have, or say that it is
// closed.
func callsBesideClose(t *T) {
	t.consumer()
	t.put("a")
	ctx, nothing := t.ctx(), driver.Target{Topic: topic, Group: driver.DefaultGroup, ID: "none"}
	calls := map[string]func() error{
		"Stats":  func() error { _, err := t.Stats(ctx, topic); return err },
		"Topics": func() error { _, err := t.Topics(ctx); return err },
		"Usage":  func() error { _, err := t.Usage(ctx); return err },
		"Browse": func() error {
			_, err := t.Browse(ctx, driver.Query{Topic: topic, Group: driver.DefaultGroup, State: driver.StateReady})
			return err
		},
		"Get":         func() error { _, err := t.Get(ctx, nothing); return err },
		"Delete":      func() error { return t.Delete(ctx, []driver.Target{nothing})[0] },
		"Move":        func() error { return t.Move(ctx, []driver.Move{{Target: nothing}})[0] },
		"Pause":       func() error { return t.Pause(ctx, topic, "", false) },
		"Purge":       func() error { _, err := t.Purge(ctx, topic, ""); return err },
		"EnsureTopic": func() error { return t.EnsureTopic(ctx, topic, t.onePartition(driver.TopicConfig{})) },
		"EnsureGroup": func() error { return t.EnsureGroup(ctx, topic, driver.DefaultGroup, driver.GroupOptions{}) },
		"Audit":       func() error { _, err := t.Audit(ctx, topic, false); return err },
		"Publish":     func() error { _, err := t.Publish(ctx, t.msgs([]string{"b"}), driver.PublishOptions{}); return err },
	}
	var under sync.WaitGroup
	for name, call := range calls {
		under.Go(func() {
			for ctx.Err() == nil {
				err := call()
				if errors.Is(err, driver.ErrClosed) {
					return
				}
				if err != nil && !errors.Is(err, driver.ErrNotFound) {
					t.Errorf("%s beside Close: got error %v, want ErrClosed", name, err)
					return
				}
				t.pass(time.Millisecond)
			}
		})
	}
	t.pass(quiet)
	t.ok(t.Close(t.ctx()), "Close")
	under.Wait()
}

func receiveCancelled(t *T) {
	s := t.consumer()
	t.put("a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ds, err := s.Receive(ctx, 1)
	if err == nil {
		s.release(ds...) // it was quicker than the cancellation
	} else if err != context.Canceled { //nolint:errorlint // the contract: context errors come bare
		t.Fatalf("Receive with a cancelled context: got error %v, want context.Canceled bare", err)
	}
	t.equal(bodies(s.take(1)), []string{"a"}, "delivery after the cancelled Receive")
}

// cancelLosesNoClaim: Receives that end while messages arrive must neither lose nor count a claim.
func cancelLosesNoClaim(t *T) {
	const n = 100
	s := t.consumer()
	published := make(chan struct{})
	go func() {
		defer close(published)
		for _, b := range numbered("a", n) {
			if _, err := t.Publish(t.Context(), t.msgs([]string{b}), driver.PublishOptions{}); err != nil {
				t.Errorf("Publish: %v", err)
			}
			time.Sleep(time.Millisecond)
		}
	}()
	var got []string
	deadline := time.Now().Add(t.Patience)
	for i := 0; len(got) < n && time.Now().Before(deadline); i++ {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%7)*300*time.Microsecond)
		ds, _ := s.Receive(ctx, 3)
		cancel()
		for _, d := range ds {
			t.counted(d, 1, 1, driver.CauseFirst)
		}
		s.ack(ds...)
		got = append(got, bodies(ds)...)
	}
	<-published
	t.equal(got, numbered("a", n), "deliveries")
	t.counts(0, 0, 0, 0)
}

// cancelPassesTheWakeUpOn: a message that wakes a Receive just as it is cancelled reaches the other that waits, unless
// the cancelled one had claimed it already.
func cancelPassesTheWakeUpOn(t *T) {
	if t.Caps.Parallel != driver.ParallelUnbounded || t.Caps.Counts != driver.CountsExact {
		t.Skip("the other consumer may own no partition, or it cannot be seen whether it was claimed")
	}
	long, short := t.consumer(), t.subscribe(driver.SubscribeOptions{Instance: "2"})
	rounds := 100
	if t.Virtual {
		rounds = 2000
	}
	for i := range rounds {
		t.wakeAndCancel(long, short, i)
	}
}

// wakeAndCancel publishes as the shorter of two waits ends, and demands that the message is not left lying.
func (t *T) wakeAndCancel(long, short *sub, round int) {
	t.Helper()
	waiting, cancel := context.WithTimeout(t.Context(), t.Patience)
	defer cancel()
	ending, end := context.WithTimeout(t.Context(), 2*time.Millisecond)
	defer end()
	shorts, longs := make(chan []*driver.Delivery, 1), make(chan []*driver.Delivery, 1)
	starts := []func(){
		func() { ds, _ := short.Receive(ending, 1); shorts <- ds },
		func() { ds, _ := long.Receive(waiting, 1); longs <- ds },
	}
	for j := range starts { // either may be the one that is woken first
		go starts[(round+j)%2]()
		t.pass(time.Millisecond)
	}
	t.put("a")
	s := <-shorts
	if len(s) == 0 {
		for wait := t.Late + quiet; wait > 0; { // as long again as the machine stalls
			start := time.Now()
			select {
			case l := <-longs:
				long.ack(l...)
				return
			case <-time.After(wait):
				wait = t.stalledSince(start)
			}
		}
		if n := t.groupStats(driver.DefaultGroup).Ready; n > 0 {
			t.Fatalf("%d message is ready, and a consumer that waits for it does not get it", n)
		}
		s = short.take(1) // it had claimed it
	}
	short.ack(s...)
	cancel()
	<-longs
}

func closeReturnsACancelledClaim(t *T) {
	s := t.consumer()
	ctx, cancel := context.WithCancel(t.Context())
	t.put("a")
	cancel()
	ds, _ := s.Receive(ctx, 1)
	s.leave() // whether delivered, claimed meanwhile, or never claimed: it is free again
	_ = ds
	t.subscribe(driver.SubscribeOptions{Instance: "2"}).expect("a")
}

// stopKeepsTheCause: what a stopping consumer had claimed and nobody has seen says so, whichever way it goes back: the
// claim of a cancelled Receive, with Drain or with Close, which may come at the same time.
func stopKeepsTheCause(t *T) {
	t.oneLane(topic)
	const many = 400 // so that it takes a while
	t.put(numbered("a", many)...)
	r, rounds := t.random(0), 20
	if t.Caps.Parallel != driver.ParallelUnbounded {
		rounds = 3 // joining takes long
	}
	took := time.Millisecond // by the last Receive that was not cancelled
	for i := range rounds {
		s := t.subscribe(driver.SubscribeOptions{Instance: fmt.Sprint(i)})
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.Int64N(int64(took))))
		start := time.Now()
		if ds, err := s.Receive(ctx, many); err == nil {
			took = max(time.Since(start), time.Microsecond) * 3 / 2
			unseen := make([]driver.Settlement, len(ds))
			for i, d := range ds {
				unseen[i] = driver.Settlement{Delivery: d, Outcome: driver.Release, Unseen: true}
			}
			s.settle(unseen...)
		}
		cancel()
		left := make(chan error, 1)
		go func() { left <- s.Close(t.ctx()) }()
		s.drain()
		t.ok(<-left, "Close beside Drain")
	}
	for _, d := range t.subscribe(driver.SubscribeOptions{}).take(many) {
		t.counted(d, 1, 1, driver.CauseFirst)
	}
}

// settleOutlivesItsContext: a caller that gives up changes neither what becomes of a settlement nor what it is told.
func settleOutlivesItsContext(t *T) {
	s := t.consumer()
	t.put("acked", "emits", "dropped", "retried", "released", "parked", "dead")
	ds := s.take(7)
	failure := &driver.Failure{Reason: driver.ReasonFatal, Error: "test"}
	settlements := []driver.Settlement{{Delivery: ds[0]}, {Delivery: ds[1], Emit: []*driver.Message{t.msg("emitted")}},
		{Delivery: ds[2], Outcome: driver.Drop},
		{Delivery: ds[3], Outcome: driver.Retry, Failure: failure}, {Delivery: ds[4], Outcome: driver.Release},
		{Delivery: ds[5], Outcome: driver.Release, After: time.Hour},
		{Delivery: ds[6], Outcome: driver.Dead, Failure: failure}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for i, err := range s.Settle(ctx, settlements) {
		t.ok(err, "Settle of "+string(ds[i].Body)+" with a context that has ended")
	}
	got := bodies(s.take(3))
	slices.Sort(got)
	t.equal(got, []string{"emitted", "released", "retried"}, "what is delivered after it")
	t.counts(0, 3, 1, 1)
}
