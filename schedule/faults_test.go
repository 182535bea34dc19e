package schedule_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/schedule"
)

// faulty is a broker on which publishes, settlements of ticks and writes can be made to fail.
type faulty struct {
	driver.Driver
	mu sync.Mutex
	faults
}

// faults are what is done in place of the broker; nil: nothing.
type faults struct {
	keep    bool // nothing is deleted
	publish func(publish func() ([]driver.Receipt, error)) ([]driver.Receipt, error)
	settle  func(settle func() []error) []error
	// instead settles ticks in place of the broker.
	instead func(sub driver.Subscription, list []driver.Settlement) []error
	apply   func(bucket string, apply func() []driver.WriteResult) []driver.WriteResult
}

// set changes the faults from now on.
func (f *faulty) set(to faults) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = to
}

func (f *faulty) now() faults {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.faults
}

func (f *faulty) wrap(d driver.Driver) driver.Driver {
	f.Driver = d
	return f
}

func (f *faulty) Publish(ctx context.Context, ms []*driver.Message, o driver.PublishOptions) ([]driver.Receipt, error) {
	publish := func() ([]driver.Receipt, error) { return f.Driver.Publish(ctx, ms, o) }
	if fault := f.now().publish; fault != nil {
		return fault(publish)
	}
	return publish()
}

func (f *faulty) Subscribe(ctx context.Context, o driver.SubscribeOptions) (driver.Subscription, error) {
	sub, err := f.Driver.Subscribe(ctx, o)
	if err != nil || o.Topic != schedule.Topic {
		return sub, err
	}
	return faultySubscription{sub, f}, nil
}

func (f *faulty) Delete(ctx context.Context, ts []driver.Target) []error {
	if f.now().keep {
		return all(driver.ErrNotApplied, len(ts))
	}
	return f.Driver.Delete(ctx, ts)
}

func (f *faulty) KV() driver.KV { return faultyKV{f.Driver.KV(), f} }

type faultySubscription struct {
	driver.Subscription
	f *faulty
}

func (s faultySubscription) Settle(ctx context.Context, list []driver.Settlement) []error {
	settle := func() []error { return s.Subscription.Settle(ctx, list) }
	switch now := s.f.now(); {
	case now.instead != nil:
		return now.instead(s.Subscription, list)
	case now.settle != nil:
		return now.settle(settle)
	}
	return settle()
}

type faultyKV struct {
	driver.KV
	f *faulty
}

func (k faultyKV) Apply(ctx context.Context, bucket string, o driver.KVOptions,
	ws ...driver.Write) []driver.WriteResult {
	apply := func() []driver.WriteResult { return k.KV.Apply(ctx, bucket, o, ws...) }
	if fault := k.f.now().apply; fault != nil {
		return fault(bucket, apply)
	}
	return apply()
}

// shared is a driver that somebody else closes.
type shared struct{ driver.Driver }

func (shared) Close(context.Context) error { return nil }

func all(err error, n int) (errs []error) {
	for range n {
		errs = append(errs, err)
	}
	return errs
}

// unsure makes settlements whose outcome is not known: applied, or not, or only what they emit was stored.
func unsure(f *faulty) func(sub driver.Subscription, list []driver.Settlement) []error {
	var n atomic.Int64
	return func(sub driver.Subscription, list []driver.Settlement) []error {
		ctx := context.Background()
		switch n.Add(1) % 4 {
		case 0:
			return sub.Settle(ctx, list)
		case 1: // applied
			sub.Settle(ctx, list)
		case 2: // not applied, and the lease ends
		case 3: // as where follow-ups are no part of the step: stored, and the ack is lost
			for _, s := range list {
				if len(s.Emit) > 0 {
					if _, err := f.Driver.Publish(ctx, s.Emit, driver.PublishOptions{}); err != nil {
						return all(err, len(list))
					}
				}
			}
		}
		return all(driver.ErrUnknown, len(list))
	}
}

// A settlement whose outcome is not known doubles nothing and loses nothing.
func TestUnknownSettlement(t *testing.T) {
	f := &faulty{}
	f.instead = unsure(f)
	virtual(t, f.wrap, func(r *rig) {
		r.put(schedule.Schedule{Name: "a", Spec: "@every 10s"})
		r.run()
		r.run()
		r.pass(2000*time.Second + 9*time.Second)
		fires := r.fired()
		if len(fires) != 200 {
			r.Fatalf("%d fires, want 200", len(fires))
		}
		for i, f := range fires {
			if at := begin.Add(time.Duration(i+1) * 10 * time.Second); f.tick != at.Format(time.RFC3339) || f.at.Before(at) ||
				f.at.Sub(at) > 8*time.Second {
				r.Errorf("fire %d is of %s, at %s", i, f.tick, f.at)
			}
		}
	})
}

// noProgress refuses to note how far a schedule is.
func noProgress(bucket string, apply func() []driver.WriteResult) []driver.WriteResult {
	if bucket == "schedules.progress" {
		return []driver.WriteResult{{Err: driver.ErrNotApplied}}
	}
	return apply()
}

// Ticks go on, once each, although how far a schedule is can never be noted.
func TestProgressIsNeverNoted(t *testing.T) {
	f := &faulty{faults: faults{apply: noProgress}}
	virtual(t, f.wrap, func(r *rig) {
		r.put(schedule.Schedule{Name: "a", Spec: "*/10 * * * *"})
		r.run()
		r.pass(61 * time.Minute)
		r.put(schedule.Schedule{Name: "a", Spec: "*/10 * * * *"})
		r.pass(91 * time.Minute)
		var want []time.Duration
		for m := 10; m <= 90; m += 10 {
			want = append(want, time.Duration(m)*time.Minute)
		}
		r.expect(want...)
	})
}

// A tick that vanished is laid again: after a purge, and after an edit that did not come to its end.
func TestVanishedTick(t *testing.T) {
	t.Run("purged", func(t *testing.T) {
		virtual(t, nil, func(r *rig) {
			r.put(schedule.Schedule{Name: "a", Spec: "@every 30m"})
			r.put(schedule.Schedule{Name: "b", Spec: "@daily"})
			r.run()
			r.run()
			r.pass(31 * time.Minute)
			r.expect(30 * time.Minute)
			n, err := r.d.Purge(r.Context(), schedule.Topic, "")
			r.ok(err)
			if n != 2 {
				r.Fatalf("%d ticks were there", n)
			}
			r.pass(59 * time.Minute)
			r.expect()
			r.pass(63 * time.Minute)
			r.expectOf(time.Hour)
			r.pass(90 * time.Minute)
			r.expect(90 * time.Minute)
			r.pass(23 * time.Hour)
			r.fired()
			r.pass(24*time.Hour + 3*time.Minute)
			for _, f := range r.fired() {
				if f.name == "b" {
					return
				}
			}
			r.Errorf("b did not fire")
		})
	})
	for _, again := range []bool{true, false} { // whether it is declared again, or somebody looks
		t.Run("never laid", func(t *testing.T) {
			f := &faulty{}
			virtual(t, f.wrap, func(r *rig) {
				r.run()
				f.set(faults{publish: func(func() ([]driver.Receipt, error)) ([]driver.Receipt, error) {
					return []driver.Receipt{{Err: driver.ErrNotApplied}}, driver.ErrNotApplied
				}})
				s := schedule.Schedule{Name: "a", Spec: "@every 30s", Message: message("a")}
				r.wants(r.s.Put(r.Context(), s), ferry.ErrNotApplied)
				f.set(faults{})
				if again {
					r.put(s)
					r.pass(time.Minute)
					r.expect(30*time.Second, time.Minute)
					return
				}
				r.pass(3 * time.Minute)
				fires := r.fired()
				if len(fires) < 2 || fires[0].tick != begin.Add(30*time.Second).Format(time.RFC3339) {
					r.Errorf("%+v", fires)
				}
			})
		})
	}
}

// A tick of an older revision that could not be deleted is forgotten when it is due, also when nothing is noted of how
// far its schedule is.
func TestOlderRevision(t *testing.T) {
	f := &faulty{faults: faults{keep: true, apply: noProgress}}
	virtual(t, f.wrap, func(r *rig) {
		for _, name := range []string{"a", "gone", "still"} {
			r.put(schedule.Schedule{Name: name, Spec: "@hourly"})
		}
		r.run()
		r.pass(30 * time.Minute)
		r.put(schedule.Schedule{Name: "a", Spec: "45 * * * *"})
		r.ok(r.s.Delete(r.Context(), "gone"))
		r.ok(r.s.Pause(r.Context(), "still"))
		r.pass(2 * time.Hour)
		r.expect(45*time.Minute, 105*time.Minute)
		if n := r.lying(); n != 1 {
			r.Errorf("%d ticks lie there", n)
		}
	})
}

// A message that the broker will never take does not stop its schedule, nor others.
func TestMessageIsNeverTaken(t *testing.T) {
	f := &faulty{}
	f.instead = func(sub driver.Subscription, list []driver.Settlement) []error {
		errs := make([]error, len(list))
		for i, s := range list {
			if len(s.Emit) > 0 && string(s.Emit[0].Body) == "bad" {
				errs[i] = driver.NewError(driver.ErrUnsupported, "no such thing here", "", nil)
				continue
			}
			errs[i] = sub.Settle(context.Background(), []driver.Settlement{s})[0]
		}
		return errs
	}
	virtual(t, f.wrap, func(r *rig) {
		r.put(schedule.Schedule{Name: "bad", Spec: "@every 10s"})
		r.put(schedule.Schedule{Name: "good", Spec: "@every 10s"})
		r.run()
		r.pass(30 * time.Second)
		r.expect(10*time.Second, 20*time.Second, 30*time.Second)
		if st := r.status("bad"); st.Problem == "" || !st.Next.Equal(begin.Add(40*time.Second)) {
			r.Errorf("%+v", st)
		}
	})
}

// The broker is away for a while: ticks go on by themselves.
func TestBrokerIsAway(t *testing.T) {
	f := &faulty{}
	virtual(t, f.wrap, func(r *rig) {
		r.put(schedule.Schedule{Name: "a", Spec: "@every 10s"})
		r.run()
		r.pass(15 * time.Second)
		f.set(faults{settle: func(func() []error) []error { return all(driver.ErrNotApplied, 1) }})
		r.pass(25 * time.Second)
		f.set(faults{})
		r.pass(30 * time.Second)
		r.expectOf(10*time.Second, 20*time.Second, 30*time.Second)
	})
}

// A schedule of a version to come is not run here, and not lost: its tick waits for an instance that can read it.
func TestUnreadableSchedule(t *testing.T) {
	virtual(t, nil, func(r *rig) {
		r.put(schedule.Schedule{Name: "a", Spec: "@every 10s"})
		vs, err := r.d.KV().Get(r.Context(), "schedules", "a")
		r.ok(err)
		good := vs[0].Data
		write := func(data []byte) {
			r.ok(r.d.KV().Apply(r.Context(), "schedules", driver.KVOptions{}, driver.Write{Name: "a", Data: data})[0].Err)
		}
		write([]byte(`{"spec":"@fortnightly"}`))
		r.run()
		r.pass(2 * time.Minute)
		_, err = r.s.Get(r.Context(), "a")
		r.wants(err, ferry.ErrInvalid)
		p, err := r.s.List(r.Context(), schedule.Query{})
		r.ok(err)
		if len(p.Schedules) != 1 || p.Schedules[0].Problem == "" {
			r.Errorf("%+v", p)
		}
		r.expect()
		write(good)
		r.pass(5 * time.Minute)
		if fires := r.fired(); len(fires) < 10 {
			r.Errorf("%d fires", len(fires))
		}
	})
}

// noValues is a broker without named values.
type noValues struct{ driver.Driver }

func (n noValues) KV() driver.KV { return unsupported{n.Driver.KV()} }

type unsupported struct{ driver.KV }

func (unsupported) Get(context.Context, string, ...string) ([]driver.Value, error) {
	return nil, driver.ErrUnsupported
}

// A broker that cannot hold schedules says so.
func TestUnsupportedBroker(t *testing.T) {
	virtual(t, func(d driver.Driver) driver.Driver { return noValues{d} }, func(r *rig) {
		r.wants(r.s.Put(r.Context(), schedule.Schedule{Name: "a", Spec: "@daily", Message: message("a")}),
			ferry.ErrUnsupported)
		r.wants(r.scheduler().Run(r.Context()), ferry.ErrUnsupported)
		if _, err := schedule.New(nil, schedule.Options{}); !errors.Is(err, ferry.ErrInvalid) {
			r.Error(err)
		}
		if _, err := schedule.New(r.b, schedule.Options{Lease: -1}); !errors.Is(err, ferry.ErrInvalid) {
			r.Error(err)
		}
		if _, err := schedule.New(r.b,
			schedule.Options{Lease: 999 * time.Millisecond}); !errors.Is(err, ferry.ErrUnsupported) {
			r.Errorf("a lease that is too short for the broker: %v", err)
		}
	})
}
