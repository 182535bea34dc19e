package deadletter_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/internal/faulty"
	"github.com/ferrymq/ferry/internal/runtest"
)

// virtual runs a test on a broker in memory, in virtual time.
func virtual(t *testing.T, f func(k *kit)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t, memory.Options{})
		f(newKit(t, broker(t, m)))
	})
}

// start runs a recoverer in the background. The function it returns stops it.
func (k *kit) start(o deadletter.RecovererOptions) (*deadletter.Recoverer, func()) {
	k.Helper()
	r, err := deadletter.NewRecoverer(k.queue, o)
	k.ok(err)
	return r, runtest.Start(k, r.Run)
}

// lives follows one message for a time: it dies as soon as it comes back. It returns when it came back, counted from
// its last death.
func (k *kit) lives(reason driver.Reason, d time.Duration) (waits []time.Duration) {
	k.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	sub, err := k.d.Subscribe(ctx, driver.SubscribeOptions{Topic: topic, Instance: "grim"})
	k.ok(err)
	last := time.Time{}
	for {
		ds, err := sub.Receive(ctx, 1)
		if err != nil {
			k.ok(sub.Close(context.Background()))
			return waits
		}
		if !last.IsZero() {
			waits = append(waits, time.Since(last).Round(time.Second))
		}
		last = time.Now()
		k.ok(errors.Join(sub.Settle(ctx,
			[]driver.Settlement{{Delivery: ds[0], Outcome: driver.Dead,
				Failure: &driver.Failure{Reason: reason, Error: "again"}}})...))
	}
}

// The waits of each shipped strategy, by the clock.
func TestShippedStrategies(t *testing.T) {
	t.Parallel()
	minutes := func(all ...float64) []time.Duration {
		var ds []time.Duration
		for _, m := range all {
			ds = append(ds, time.Duration(m*float64(time.Minute)))
		}
		return ds
	}
	const look = 10 * time.Second // it is found up to this late
	hours := slices.Repeat([]time.Duration{time.Hour}, 24)
	for reason, want := range map[driver.Reason][]time.Duration{
		driver.ReasonRateLimited:    minutes(1, 2, 4, 8, 16, 32, 60, 60, 60, 60),
		driver.ReasonKeyBlocked:     hours,
		driver.ReasonBreakerOpen:    minutes(0.5, 1, 2, 4, 8, 10, 10, 10, 10, 10),
		driver.ReasonOverload:       minutes(0.5, 1, 2, 4, 8, 16, 30, 30, 30, 30),
		driver.ReasonQueueFull:      minutes(0.5, 1, 2, 4, 8, 16, 30, 30, 30, 30),
		driver.ReasonTimeout:        minutes(1, 2, 4, 8, 16),
		driver.ReasonDownstream:     minutes(1, 2, 4, 8, 16),
		driver.ReasonMaxAttempts:    minutes(5, 20, 80),
		driver.ReasonPanic:          nil,
		driver.ReasonMaxDeliveries:  nil,
		driver.ReasonInvalidMessage: nil,
		driver.ReasonFatal:          nil,
		driver.ReasonRejected:       nil,
		driver.ReasonExpired:        nil,
		"card_declined":             nil,
	} {
		t.Run(string(reason), func(t *testing.T) {
			virtual(t, func(k *kit) {
				escalated := 0
				r, stop := k.start(deadletter.RecovererOptions{Interval: look,
					Escalate: func(context.Context, deadletter.Letter, string) { escalated++ }})
				defer stop()
				k.publish(&driver.Message{ID: "m"})
				long := 2 * time.Hour
				for _, d := range want {
					long += d + look
				}
				waits := k.lives(reason, long)
				for i := range waits {
					if late := waits[i] - at(want, i); late < 0 || late > look {
						k.Errorf("round %d came after %v, want %v", i+1, waits[i], at(want, i))
					}
				}
				if len(waits) != len(want) {
					k.Errorf("%d rounds %v, want %d", len(waits), waits, len(want))
				}
				s := r.Stats()
				if int(s.Recovered) != len(want) || s.Unrecoverable != min(1, len(want)) || escalated != s.Unrecoverable ||
					s.Unrecoverable+s.AwaitingReview+s.Blocked != 1 {
					k.Errorf("%+v, escalated %d times", s, escalated)
				}
			})
		})
	}
}

func at(list []time.Duration, i int) time.Duration {
	if i < len(list) {
		return list[i]
	}
	return -time.Hour
}

// A limited message does not come back while its key is blocked, and does as soon as it is not.
func TestNeverWhileTheKeyIsBlocked(t *testing.T) {
	virtual(t, func(k *kit) {
		free := time.Now().Add(3 * time.Hour)
		r, stop := k.start(deadletter.RecovererOptions{Blocked: func(_ context.Context, l deadletter.Letter) bool {
			return l.Key == "bad" && time.Now().Before(free)
		}})
		defer stop()
		k.publish(&driver.Message{ID: "blocked", Key: "bad"}, &driver.Message{ID: "free", Key: "good"})
		k.bury(2, driver.Failure{Reason: driver.ReasonRateLimited})
		time.Sleep(2*time.Hour + time.Minute)
		synctest.Wait()
		if s, c := r.Stats(), k.counts(topic); s.Recovered != 1 || s.Blocked != 1 || c.Ready != 1 || c.Dead != 1 {
			k.Errorf("%+v %+v", s, c)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if s, c := r.Stats(), k.counts(topic); s.Recovered != 2 || s.Blocked != 0 || c.Ready != 2 {
			k.Errorf("%+v %+v", s, c)
		}
	})
}

// What a user's own strategy is told and asked.
func TestOwnStrategy(t *testing.T) {
	virtual(t, func(k *kit) {
		var events []string
		own := deadletter.Strategy{
			Name: "mend", Where: k.where(`error startsWith "no such user" and json.user == 7`),
			Backoff: driver.RetryPolicy{Delays: []time.Duration{time.Minute}}, MaxRounds: 2, TTL: time.Hour,
			Recoverable: func(_ context.Context, l deadletter.Letter) bool { return l.Key != "never" },
			Prepare: func(l deadletter.Letter, m *driver.Message) error {
				if l.ID == "hopeless" {
					return errors.New("cannot be mended")
				}
				m.Headers = map[string]string{"mended": fmt.Sprint(l.Dead.Rounds + 1)}
				return nil
			},
			OnSuccess: func(_ context.Context, l deadletter.Letter) { events = append(events, "back "+l.ID) },
			OnFailure: func(_ context.Context, l deadletter.Letter, err error) { events = append(events, "not "+l.ID) },
		}
		r, stop := k.start(deadletter.RecovererOptions{
			Strategies: append([]deadletter.Strategy{own}, deadletter.Strategies(nil)...), Interval: 45 * time.Second})
		defer stop()
		body := []byte(`{"user":7}`)
		k.publish(&driver.Message{ID: "a", Body: body}, &driver.Message{ID: "hopeless", Body: body},
			&driver.Message{ID: "b", Body: body, Key: "never"}, &driver.Message{ID: "c", Body: []byte(`{"user":8}`)})
		k.bury(4, driver.Failure{Reason: driver.ReasonFatal, Error: "no such user"})
		time.Sleep(100 * time.Second)
		synctest.Wait()
		slices.Sort(events)
		if !slices.Equal(events, []string{"back a", "not hopeless"}) {
			k.Errorf("%v", events)
		}
		if s := r.Stats(); s.Recovered != 1 || s.AwaitingReview != 1 || s.Failed != 1 || s.Blocked != 1 {
			k.Errorf("%+v", s)
		}
		k.take(topic, driver.DefaultGroup, 1, func(d *driver.Delivery) driver.Settlement {
			if d.Headers["mended"] != "1" {
				k.Errorf("%v", d.Headers)
			}
			return driver.Settlement{Outcome: driver.Ack}
		})
		time.Sleep(2 * time.Hour) // beyond the TTL both that are left are given up
		synctest.Wait()
		if s := r.Stats(); s.Unrecoverable != 2 {
			k.Errorf("%+v", s)
		}
	})
}

// The order of a key is kept: a letter waits behind an earlier one whose time has not come.
func TestALetterWaitsBehindAnEarlierOneOfItsKey(t *testing.T) {
	virtual(t, func(k *kit) {
		k.publish(&driver.Message{ID: "1", Key: "k", Body: []byte("1")},
			&driver.Message{ID: "2", Key: "k", Body: []byte("2")})
		reasons := []driver.Reason{driver.ReasonMaxAttempts, driver.ReasonTimeout} // after 5 minutes, and after 1
		k.take(topic, driver.DefaultGroup, 2, func(d *driver.Delivery) driver.Settlement {
			f := driver.Failure{Reason: reasons[0]}
			reasons = reasons[1:]
			return driver.Settlement{Outcome: driver.Dead, Failure: &f}
		})
		_, stop := k.start(deadletter.RecovererOptions{})
		defer stop()
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if c := k.counts(topic); c.Ready != 0 {
			k.Errorf("%+v", c)
		}
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if got := k.bodies(topic, 2); !slices.Equal(got, []string{"1", "2"}) {
			k.Errorf("%v", got)
		}
	})
}

// More letters than one look takes are all brought back, in several, and expire if that is asked for.
func TestPassesAreBounded(t *testing.T) {
	virtual(t, func(k *kit) {
		k.dead(slow, numbered("m", 950)...)
		k.dead(bad, numbered("b", 10)...)
		r, stop := k.start(deadletter.RecovererOptions{MaxScan: 100,
			Retention: deadletter.Retention{MaxAge: 30 * time.Minute}})
		defer stop()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if s, c := r.Stats(), k.counts(topic); s.Recovered != 950 || c.Ready != 950 || c.Dead != 10 ||
			s.AwaitingReview != 10 {
			k.Errorf("%+v %+v", s, c)
		}
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		if s, c := r.Stats(), k.counts(topic); s.Expired != 10 || c.Dead != 0 {
			k.Errorf("%+v %+v", s, c)
		}
	})
}

// Whoever loses the lease stops before another begins, although it does not know that it was lost.
func TestALostLeaseEndsTheWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(time.Minute) // for as long as a lock that was perhaps taken is given up: one TTL
		m := newMemory(t, memory.Options{})
		cut := faulty.New(m)
		b := newKit(t, broker(t, m))
		a := newKit(t, broker(t, shared{cut}))
		first, stopFirst := a.start(deadletter.RecovererOptions{})
		defer stopFirst()
		time.Sleep(time.Second)
		second, stopSecond := b.start(deadletter.RecovererOptions{})
		defer stopSecond()
		time.Sleep(time.Minute)
		synctest.Wait()
		if !first.Stats().Leading || second.Stats().Leading {
			t.Fatalf("%+v %+v", first.Stats(), second.Stats())
		}
		// as a connection that is dead without saying so
		cut.Set(faulty.Write, func(ctx context.Context, _ faulty.Call, _ func()) error {
			<-ctx.Done()
			return driver.ErrUnknown
		})
		for range 600 {
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			if first.Stats().Leading && second.Stats().Leading {
				t.Fatal("both work")
			}
		}
		if first.Stats().Leading || !second.Stats().Leading {
			t.Errorf("%+v %+v", first.Stats(), second.Stats())
		}
	})
}

func TestBadOptionsAreRefused(t *testing.T) {
	virtual(t, func(k *kit) {
		for name, o := range map[string]deadletter.RecovererOptions{
			"interval":  {Interval: -1},
			"retention": {Retention: deadletter.Retention{MaxCount: -1}},
			"state":     {Selection: deadletter.Selection{State: driver.StateInvalid}},
			"topic":     {Selection: deadletter.Selection{Topic: "a b"}},
			"nameless":  {Strategies: []deadletter.Strategy{{}}},
			"reason":    {Strategies: []deadletter.Strategy{{Name: "x", Reasons: []driver.Reason{""}}}},
			"rounds":    {Strategies: []deadletter.Strategy{{Name: "x", MaxRounds: -1}}},
			"backoff":   {Strategies: []deadletter.Strategy{{Name: "x", Backoff: driver.RetryPolicy{Base: -1}}}},
		} {
			if _, err := deadletter.NewRecoverer(k.queue, o); !errors.Is(err, driver.ErrInvalid) {
				k.Errorf("%s: %v", name, err)
			}
		}
		for name, r := range map[string]deadletter.ReplayOptions{"rate": {Rate: -1}, "slow": {Rate: 1e-9}, "to": {To: "a b"},
			"state": {Selection: deadletter.Selection{State: driver.StateReady}}} {
			if _, err := k.queue.Replay(k.ctx(), r); !errors.Is(err, driver.ErrInvalid) {
				k.Errorf("%s: %v", name, err)
			}
		}
		if _, err := deadletter.New(nil); !errors.Is(err, driver.ErrInvalid) {
			k.Error(err)
		}
	})
}

// A rate is kept, by the clock.
func TestReplayIsThrottled(t *testing.T) {
	virtual(t, func(k *kit) {
		k.dead(slow, numbered("m", 500)...)
		begin := time.Now()
		r, err := k.queue.Replay(context.Background(), deadletter.ReplayOptions{Rate: 50})
		k.ok(err)
		if took := time.Since(begin); r.Done != 500 || took < 9900*time.Millisecond || took > 10*time.Second {
			k.Errorf("500 at 50 in a second took %v: %+v", took, r)
		}
	})
}

// What a letter advises and what the shipped strategies do with it is the same, for every reason that Ferry gives.
func TestAdviceAndStrategiesAgree(t *testing.T) {
	t.Parallel()
	for _, reason := range []driver.Reason{driver.ReasonMaxAttempts, driver.ReasonMaxDeliveries, driver.ReasonFatal,
		driver.ReasonTimeout, driver.ReasonPanic,
		driver.ReasonExpired, driver.ReasonRateLimited, driver.ReasonKeyBlocked, driver.ReasonBreakerOpen,
		driver.ReasonQueueFull, driver.ReasonInvalidMessage,
		driver.ReasonDownstream, driver.ReasonOverload, driver.ReasonRejected, "card_declined"} {
		all := deadletter.Strategies(nil)
		at := slices.IndexFunc(all, func(s deadletter.Strategy) bool {
			return len(s.Reasons) == 0 || slices.Contains(s.Reasons, reason)
		})
		recoverable, action := reason.Advice()
		retried := action == driver.ActionAutoRetry || action == driver.ActionDelayedRetry
		if recoverable == all[at].Review || retried == all[at].Review {
			t.Errorf("%s: strategy %s, review %v, and the advice is %s, recoverable %v", reason, all[at].Name, all[at].Review,
				action, recoverable)
		}
	}
}

// What is due comes back in the order of its priority, and of one key in the order of publishing.
func TestTheMostImportantComesBackFirst(t *testing.T) {
	for name, c := range map[string]struct {
		vip  func(deadletter.Letter) bool
		want []string
	}{
		"by the lane": {nil, []string{"k1", "k2", "urgent", "plain", "limited", "blocked"}},
		"by the user": {func(l deadletter.Letter) bool { return string(l.Body) == "blocked" || string(l.Body) == "plain" },
			[]string{"plain", "blocked", "k1", "k2", "urgent", "limited"}},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(k *kit) {
				for _, m := range []struct {
					body, key string
					reason    driver.Reason
					lane      driver.Priority
				}{{"blocked", "", driver.ReasonKeyBlocked, driver.Normal}, {"limited", "", driver.ReasonRateLimited, driver.Normal},
					{"k1", "k", driver.ReasonTimeout, driver.Normal},
					{"plain", "", driver.ReasonTimeout, driver.Low}, {"k2", "k", driver.ReasonTimeout, driver.High},
					{"urgent", "", driver.ReasonTimeout, driver.Urgent}} {
					k.publish(&driver.Message{ID: m.body, Key: m.key, Body: []byte(m.body), Priority: m.lane})
					k.bury(1, driver.Failure{Reason: m.reason, Error: "x"})
					time.Sleep(time.Second)
				}
				time.Sleep(time.Hour)
				var order []string
				all := deadletter.Strategies(nil)
				for i := range all {
					all[i].OnSuccess = func(_ context.Context, l deadletter.Letter) { order = append(order, string(l.Body)) }
				}
				r, err := deadletter.NewRecoverer(k.queue, deadletter.RecovererOptions{Strategies: all, VIP: c.vip})
				k.ok(err)
				k.ok(r.Once(k.ctx()))
				if !slices.Equal(order, c.want) {
					k.Errorf("%v came back, want %v", order, c.want)
				}
			})
		})
	}
}

// Parse errors go when they are older than their limit, which is none by default; dead letters stay.
func TestParseErrorsExpireByThemselves(t *testing.T) {
	virtual(t, func(k *kit) {
		k.dead(driver.Failure{Reason: driver.ReasonFatal, Error: "x"}, "m")
		k.ok(k.d.(*memory.Driver).StoreRaw(k.ctx(), topic, []byte("rubbish")))
		k.publish(&driver.Message{ID: "behind"})
		k.bodies(topic, 1)
		invalid := func() int64 {
			st, err := k.d.Stats(k.ctx(), topic)
			k.ok(err)
			return st.Invalid
		}
		forever, err := deadletter.NewRecoverer(k.queue, deadletter.RecovererOptions{})
		k.ok(err)
		aWeek, err := deadletter.NewRecoverer(k.queue,
			deadletter.RecovererOptions{ParseErrors: deadletter.Retention{MaxAge: 7 * 24 * time.Hour}})
		k.ok(err)
		time.Sleep(7 * 24 * time.Hour)
		k.ok(errors.Join(forever.Once(k.ctx()), aWeek.Once(k.ctx())))
		if invalid() != 1 {
			k.Error("it is gone too early")
		}
		time.Sleep(time.Nanosecond)
		k.ok(forever.Once(k.ctx()))
		if invalid() != 1 {
			k.Error("it is gone without a limit")
		}
		k.ok(aWeek.Once(k.ctx()))
		if s := aWeek.Stats(); invalid() != 0 || s.Expired != 1 || k.counts(topic).Dead != 1 {
			k.Errorf("%d parse errors, %d dead letters: %+v", invalid(), k.counts(topic).Dead, s)
		}
	})
}
