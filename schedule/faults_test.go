package schedule_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/faulty"
	"github.com/ferrymq/ferry/schedule"
)

// shared is a driver that somebody else closes.
type shared struct{ driver.Driver }

func (shared) Close(context.Context) error { return nil }

// ticks is a fault of the settlements of ticks alone.
func ticks(f faulty.Fault) faulty.Fault {
	return func(ctx context.Context, c faulty.Call, do func()) error {
		if c.Settlement.Delivery.Topic != schedule.Topic {
			return nil
		}
		return f(ctx, c, do)
	}
}

// unsure makes settlements of ticks whose outcome is not known: applied, or not, or only what they emit was stored.
func unsure(d driver.Driver) faulty.Fault {
	emits := func(_ context.Context, c faulty.Call, _ func()) error { // as where follow-ups are no part of the step
		if len(c.Settlement.Emit) > 0 {
			if _, err := d.Publish(context.Background(), c.Settlement.Emit, driver.PublishOptions{}); err != nil {
				return err
			}
		}
		return driver.ErrUnknown
	}
	return ticks(faulty.ByNumber(func(n int) faulty.Fault {
		return []faulty.Fault{nil, faulty.Lose(driver.ErrUnknown), faulty.Fail(driver.ErrUnknown), emits}[n%4]
	}))
}

// A settlement whose outcome is not known doubles nothing and loses nothing.
func TestUnknownSettlement(t *testing.T) {
	virtual(t, nil, func(r *rig) {
		r.faults.Set(faulty.Settle, unsure(r.d))
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
func noProgress(_ context.Context, c faulty.Call, _ func()) error {
	if c.Bucket == "schedules.progress" {
		return driver.ErrNotApplied
	}
	return nil
}

// Ticks go on, once each, although how far a schedule is can never be noted.
func TestProgressIsNeverNoted(t *testing.T) {
	virtual(t, nil, func(r *rig) {
		r.faults.Set(faulty.Write, noProgress)
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
			virtual(t, nil, func(r *rig) {
				r.run()
				r.faults.Set(faulty.Publish, faulty.Fail(driver.ErrNotApplied))
				s := schedule.Schedule{Name: "a", Spec: "@every 30s", Message: message("a")}
				r.wants(r.s.Put(r.Context(), s), ferry.ErrNotApplied)
				r.faults.Set(faulty.Publish, nil)
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
	virtual(t, nil, func(r *rig) {
		r.faults.Set(faulty.Delete, faulty.Fail(driver.ErrNotApplied))
		r.faults.Set(faulty.Write, noProgress)
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
	virtual(t, nil, func(r *rig) {
		r.faults.Set(faulty.Settle, func(_ context.Context, c faulty.Call, _ func()) error {
			if emit := c.Settlement.Emit; len(emit) > 0 && string(emit[0].Body) == "bad" {
				return driver.NewError(driver.ErrUnsupported, "no such thing here", "", nil)
			}
			return nil
		})
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
	virtual(t, nil, func(r *rig) {
		r.put(schedule.Schedule{Name: "a", Spec: "@every 10s"})
		r.run()
		r.pass(15 * time.Second)
		r.faults.Set(faulty.Settle, ticks(faulty.Fail(driver.ErrNotApplied)))
		r.pass(25 * time.Second)
		r.faults.Set(faulty.Settle, nil)
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
