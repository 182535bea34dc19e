package drivertest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// sub is a subscription with the verbs of a consumer.
type sub struct {
	driver.Subscription
	t        *T
	lease    time.Duration
	extended map[*driver.Delivery]time.Time // when it was last
}

// subscribe joins a group of the topic. Zero options: default group, one instance, a lease longer than any case.
func (t *T) subscribe(o driver.SubscribeOptions) *sub {
	t.Helper()
	if o.Topic == "" {
		o.Topic = topic
	}
	if o.Instance == "" {
		o.Instance = "tester"
	}
	if o.Lease == 0 {
		o.Lease = longLease
	}
	s, err := t.Subscribe(t.ctx(), o)
	t.ok(err, "Subscribe")
	return &sub{Subscription: s, t: t, lease: o.Lease, extended: map[*driver.Delivery]time.Time{}}
}

// consumer joins the default group, with the topic in one lane.
func (t *T) consumer() *sub { t.Helper(); return t.consumerWith(driver.SubscribeOptions{}) }

func (t *T) consumerWith(o driver.SubscribeOptions) *sub {
	t.Helper()
	t.oneLane(topic)
	return t.subscribe(o)
}

// shortLease joins the default group with the shortest lease the driver gives.
func (t *T) shortLease() *sub {
	t.Helper()
	return t.consumerWith(driver.SubscribeOptions{Lease: t.Caps.MinLease})
}

// take receives exactly n deliveries, in as many calls as it needs.
func (s *sub) take(n int) []*driver.Delivery {
	s.t.Helper()
	var got []*driver.Delivery
	ctx := s.t.ctx()
	for len(got) < n {
		ds, err := s.Receive(ctx, n-len(got))
		if err != nil {
			s.t.TB.Fatalf("Receive after %d of %d deliveries %q: %v", len(got), n, bodies(got), err)
		}
		if len(ds) == 0 || len(ds) > n-len(got) {
			s.t.Fatalf("Receive of at most %d returned %d deliveries", n-len(got), len(ds))
		}
		got = append(got, ds...)
	}
	return got
}

// claim receives once, however much there is.
func (s *sub) claim() []*driver.Delivery {
	s.t.Helper()
	ds, err := s.Receive(s.t.ctx(), 100)
	s.t.ok(err, "Receive")
	return ds
}

// one receives a single delivery.
func (s *sub) one() *driver.Delivery { s.t.Helper(); return s.take(1)[0] }

// expect receives as many deliveries as there are bodies, and demands them in this order.
func (s *sub) expect(want ...string) []*driver.Delivery {
	s.t.Helper()
	ds := s.take(len(want))
	s.t.equal(bodies(ds), want, "deliveries")
	return ds
}

// gather receives what comes, each settled as it does, until n have come.
func (s *sub) gather(n int) []*driver.Delivery {
	s.t.Helper()
	var got []*driver.Delivery
	for len(got) < n {
		ds := s.take(1)
		s.ack(ds...)
		got = append(got, ds...)
	}
	return got
}

// idle demands that nothing is delivered for a while.
func (s *sub) idle() { s.t.Helper(); s.idleFor(quiet) }

func (s *sub) idleFor(d time.Duration) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), d)
	defer cancel()
	ds, err := s.Receive(ctx, 100)
	if err == nil {
		s.t.Fatalf("delivered %s, want nothing", describe(ds))
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		s.t.Fatalf("Receive with nothing to deliver: got error %v, want the context's", err)
	}
}

// absorb acknowledges what comes within a time, if anything does.
func (s *sub) absorb(d time.Duration) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), d)
	defer cancel()
	if ds, err := s.Receive(ctx, 100); err == nil {
		s.ack(ds...)
	}
}

// settle applies settlements in one call, and demands that all succeed.
func (s *sub) settle(ss ...driver.Settlement) {
	s.t.Helper()
	for i, err := range s.errs(ss...) {
		if err != nil {
			s.leaseOver(ss[i].Delivery, err, "Settle "+ss[i].Outcome.String())
			s.t.Fatalf("Settle %s of %q: %v", ss[i].Outcome, ss[i].Delivery.Body, err)
		}
	}
}

// errs applies settlements in one call and returns one error each.
func (s *sub) errs(ss ...driver.Settlement) []error {
	s.t.Helper()
	errs := s.Settle(s.t.ctx(), ss)
	if len(errs) != len(ss) {
		s.t.Fatalf("Settle of %d returned %d errors", len(ss), len(errs))
	}
	return errs
}

// refused demands ErrLeaseLost for a settlement.
func (s *sub) refused(x driver.Settlement) {
	s.t.Helper()
	if err := s.errs(x)[0]; !errors.Is(err, driver.ErrLeaseLost) {
		s.t.Fatalf("stale %s of %q: got error %v, want %v", x.Outcome, x.Delivery.Body, err, driver.ErrLeaseLost)
	}
}

func (s *sub) ack(ds ...*driver.Delivery)     { s.t.Helper(); s.all(driver.Ack, 0, ds) }
func (s *sub) release(ds ...*driver.Delivery) { s.t.Helper(); s.all(driver.Release, 0, ds) }

func (s *sub) all(o driver.Outcome, after time.Duration, ds []*driver.Delivery) {
	s.t.Helper()
	ss := make([]driver.Settlement, len(ds))
	for i, d := range ds {
		ss[i] = driver.Settlement{Delivery: d, Outcome: o, After: after}
	}
	s.settle(ss...)
}

// retry fails a delivery.
func (s *sub) retry(d *driver.Delivery, after time.Duration) {
	s.t.Helper()
	s.settle(driver.Settlement{Delivery: d, Outcome: driver.Retry, After: after, Failure: failure("try again")})
}

// park releases a delivery for a while.
func (s *sub) park(d *driver.Delivery, after time.Duration) {
	s.t.Helper()
	s.settle(driver.Settlement{Delivery: d, Outcome: driver.Release, After: after})
}

// bury sends a delivery to the dead letters.
func (s *sub) bury(d *driver.Delivery) {
	s.t.Helper()
	s.settle(driver.Settlement{Delivery: d, Outcome: driver.Dead, Failure: failure("hopeless")})
}

// lose lets the leases of ds end unextended, and returns the deliveries that follow. No lease may end before its time.
func (s *sub) lose(ds ...*driver.Delivery) []*driver.Delivery {
	s.t.Helper()
	again := s.take(len(ds))
	for _, d := range ds {
		if early := time.Until(d.LeaseUntil); early > s.t.clockSlack() {
			s.t.Errorf("%q was delivered again %v before its lease ended", d.Body, early)
		}
	}
	return again
}

// extend demands that every lease is extended.
func (s *sub) extend(ds ...*driver.Delivery) {
	s.t.Helper()
	start := time.Now()
	for i, err := range s.Extend(s.t.ctx(), ds) {
		s.leaseOver(ds[i], err, "Extend")
		s.t.ok(err, fmt.Sprintf("Extend of %q", ds[i].Body))
		s.extended[ds[i]] = start
	}
}

// leave closes the subscription.
func (s *sub) leave() { s.t.Helper(); s.t.ok(s.Close(s.t.ctx()), "Subscription.Close") }

// failure is one failed attempt, as a handler reports it.
func failure(text string) *driver.Failure {
	return &driver.Failure{Duration: 5 * time.Millisecond, Reason: driver.ReasonDownstream, Error: text}
}

// counted demands the two counters and the cause of a delivery.
func (t *T) counted(d *driver.Delivery, attempt, deliveries int, cause driver.Cause) {
	t.Helper()
	if d.Attempt != attempt || d.Deliveries != deliveries || d.Cause != cause {
		t.Fatalf("%q delivered with attempt %d, deliveries %d, cause %s; want %d, %d, %s",
			d.Body, d.Attempt, d.Deliveries, d.Cause, attempt, deliveries, cause)
	}
}

// bodies returns the bodies of deliveries.
func bodies(ds []*driver.Delivery) []string {
	s := make([]string, len(ds))
	for i, d := range ds {
		s[i] = string(d.Body)
	}
	return s
}

// describe shows deliveries in a complaint.
func describe(ds []*driver.Delivery) string {
	s := ""
	for _, d := range ds {
		s += fmt.Sprintf("[%s %q key %q attempt %d deliveries %d %s]", d.ID, d.Body, d.Key, d.Attempt, d.Deliveries, d.Cause)
	}
	return s
}
