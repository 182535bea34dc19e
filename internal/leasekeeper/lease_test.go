package leasekeeper_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/leasekeeper"
)

const lease = 30 * time.Second

// giver answers renewals, and notes when they were asked for and how leases were lost.
type giver struct {
	answer func(ctx context.Context) error

	mu    sync.Mutex
	began time.Time
	asked []time.Duration
	lost  []error
	at    time.Duration // of the last loss
}

func (g *giver) renew(ctx context.Context) error {
	g.mu.Lock()
	g.asked = append(g.asked, time.Since(g.began))
	g.mu.Unlock()
	return g.answer(ctx)
}

func (g *giver) lose(why error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lost, g.at = append(g.lost, why), time.Since(g.began)
}

func (g *giver) hold(ctx context.Context) *leasekeeper.Lease {
	g.began = time.Now()
	return leasekeeper.Hold(ctx, g.began, lease, g.renew, g.lose)
}

// expect compares what was asked and lost, in a bubble where everything else waits.
func (g *giver) expect(t *testing.T, lost error, at time.Duration, asked ...time.Duration) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if !slices.Equal(g.asked, asked) {
		t.Errorf("renewals at %v, want %v", g.asked, asked)
	}
	switch {
	case lost == nil && len(g.lost) != 0:
		t.Errorf("lost %v", g.lost)
	case lost != nil && (len(g.lost) != 1 || !errors.Is(g.lost[0], lost) || g.at != at):
		t.Errorf("lost %v at %v, want once %v at %v", g.lost, g.at, lost, at)
	}
}

func seconds(ns ...int) (ds []time.Duration) {
	for _, n := range ns {
		ds = append(ds, time.Duration(n)*time.Second)
	}
	return ds
}

// TestRenewedEveryThird: as long as it is held, also when the context it was taken with has ended.
func TestRenewedEveryThird(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &giver{answer: func(context.Context) error { return nil }}
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		l := g.hold(ctx)
		time.Sleep(lease + time.Second)
		if err := errors.Join(l.Err(), l.Stop(), l.Stop()); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * lease)
		g.expect(t, nil, 0, seconds(10, 20, 30)...)
	})
}

// TestStoppedBeforeTheFirst: nothing is asked, and stopping again does nothing.
func TestStoppedBeforeTheFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &giver{answer: func(context.Context) error { return nil }}
		l := g.hold(t.Context())
		if err := errors.Join(l.Stop(), l.Stop()); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * lease)
		g.expect(t, nil, 0)
	})
}

// TestHurriesWhenLate: after a failure it is asked sooner, the lease counts from the first try, and so does the next.
func TestHurriesWhenLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		away.Store(true)
		g := &giver{answer: func(context.Context) error {
			if away.Load() {
				return driver.ErrNotApplied
			}
			return nil
		}}
		l := g.hold(t.Context())
		time.Sleep(18 * time.Second)
		away.Store(false)
		time.Sleep(13 * time.Second)
		away.Store(true)
		time.Sleep(lease)
		g.expect(t, leasekeeper.ErrExpired, 57*time.Second, // 30 s, and what is usable of 30
			seconds(10, 13, 16, 19, 20, 30, 40, 43, 46, 49, 52, 55)...)
		if err := errors.Join(l.Err(), l.Stop()); !errors.Is(err, driver.ErrLeaseLost) {
			t.Errorf("lost with %v", err)
		}
	})
}

// TestTakenAway: what another has is lost at once, and asked for no more.
func TestTakenAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		taken := driver.NewError(driver.ErrLeaseLost, "another has it", "take it again", nil)
		g := &giver{answer: func(context.Context) error { return taken }}
		l := g.hold(t.Context())
		time.Sleep(2 * lease)
		g.expect(t, taken, 10*time.Second, 10*time.Second)
		if err := l.Stop(); !errors.Is(err, taken) {
			t.Errorf("stopped with %v", err)
		}
	})
}

// TestAnswerThatNeverComes: a try is given up after half a lease, and the lease ends by our clock, whoever hangs.
func TestAnswerThatNeverComes(t *testing.T) {
	t.Parallel()
	for name, hang := range map[string]func(ctx context.Context){
		"until its context ends": func(ctx context.Context) { <-ctx.Done() },
		"longer than that":       func(context.Context) { time.Sleep(lease) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := &giver{answer: func(ctx context.Context) error { hang(ctx); return driver.ErrUnknown }}
				l := g.hold(t.Context())
				time.Sleep(2 * lease)
				g.expect(t, leasekeeper.ErrExpired, leasekeeper.Usable(lease), 10*time.Second)
				if err := l.Stop(); !errors.Is(err, leasekeeper.ErrExpired) {
					t.Errorf("stopped with %v", err)
				}
			})
		})
	}
}

// TestStopEndsARenewal that is under way, and waits for it.
func TestStopEndsARenewal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ended := false
		g := &giver{answer: func(ctx context.Context) error {
			<-ctx.Done()
			ended = true
			return ctx.Err()
		}}
		l := g.hold(t.Context())
		time.Sleep(11 * time.Second)
		if err := l.Stop(); err != nil || !ended {
			t.Errorf("stopped with %v, and the renewal had ended: %v", err, ended)
		}
		g.expect(t, nil, 0, 10*time.Second)
	})
}

// TestLongPause: a process that stood still for longer than the lease does not renew what another may have.
func TestLongPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &giver{answer: func(context.Context) error { return nil }}
		g.began = time.Now().Add(-lease) // as if it was asked for that long ago
		l := leasekeeper.Hold(t.Context(), g.began, lease, g.renew, g.lose)
		if err := l.Err(); !errors.Is(err, leasekeeper.ErrExpired) {
			t.Errorf("held after its end: %v", err)
		}
		synctest.Wait()
		g.expect(t, leasekeeper.ErrExpired, lease)
		_ = l.Stop()
	})
}

// TestRunReturnsWithItsContext: whoever keeps many leases ends so, and with ErrLeaseLost when all are.
func TestRunReturnsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, tries := time.Now(), 0
		ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
		defer cancel()
		err := leasekeeper.Run(ctx, began, lease, func(ctx context.Context, first time.Time) error {
			if end, _ := ctx.Deadline(); time.Until(end) > lease/2 || !first.Equal(time.Now()) {
				t.Errorf("a try may last until %v, and the first was at %v", end, first)
			}
			tries++
			return nil
		})
		if err != nil || tries != 2 || time.Since(began) != 25*time.Second {
			t.Errorf("%v after %d tries and %v", err, tries, time.Since(began))
		}
	})
}
