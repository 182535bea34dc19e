package cluster_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/faulty"
)

func acquire(t *testing.T, b *ferry.Broker, o cluster.LockOptions) *cluster.Lock {
	t.Helper()
	l, err := cluster.TryAcquire(context.Background(), b, "report", o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func release(t *testing.T, l *cluster.Lock) {
	t.Helper()
	if err := l.Release(context.Background()); err != nil {
		t.Errorf("Release: %v", err)
	}
}

// A lock is renewed for as long as it is held. Who asks meanwhile is told who has it, and since when.
func TestLockIsHeld(t *testing.T) {
	virtual(t, func(t *testing.T, b *ferry.Broker, _ *faulty.Driver) {
		begin := time.Now()
		l := acquire(t, b, cluster.LockOptions{Owner: "web-1"})
		pause(time.Hour)
		if l.Err() != nil || l.Context().Err() != nil || l.Epoch() == 0 {
			t.Errorf("after an hour: %v, epoch %d", l.Err(), l.Epoch())
		}
		_, err := cluster.TryAcquire(context.Background(), b, "report", cluster.LockOptions{})
		if !errors.Is(err, ferry.ErrConflict) || !strings.Contains(err.Error(), `"web-1"`) ||
			!strings.Contains(err.Error(), begin.UTC().Format(time.RFC3339)) {
			t.Errorf("TryAcquire of a held lock: %v", err)
		}
		if time.Since(begin) != time.Hour {
			t.Errorf("TryAcquire took %v", time.Since(begin)-time.Hour)
		}
		release(t, l)
		release(t, l)
		if !errors.Is(l.Err(), ferry.ErrLeaseLost) || !errors.Is(l.Context().Err(), context.Canceled) {
			t.Errorf("after the release: %v, %v", l.Err(), l.Context().Err())
		}
		next := acquire(t, b, cluster.LockOptions{})
		if next.Epoch() <= l.Epoch() {
			t.Errorf("epoch %d after %d", next.Epoch(), l.Epoch())
		}
		release(t, next)
	})
}

// Of many that want a lock one has it at a time, and all get their turn as soon as it is given up.
func TestLockContention(t *testing.T) {
	virtual(t, func(t *testing.T, b *ferry.Broker, _ *faulty.Driver) {
		var inside, most, epochs atomic.Int64
		var all sync.WaitGroup
		begin := time.Now()
		for range 20 {
			all.Go(func() {
				l, err := cluster.Acquire(context.Background(), b, "report", cluster.LockOptions{})
				if err != nil {
					t.Error(err)
					return
				}
				if n := inside.Add(1); n > most.Load() {
					most.Store(n)
				}
				if last := epochs.Swap(int64(l.Epoch())); last >= int64(l.Epoch()) {
					t.Errorf("epoch %d after %d", l.Epoch(), last)
				}
				time.Sleep(10 * time.Second)
				inside.Add(-1)
				release(t, l)
			})
		}
		all.Wait()
		if most.Load() != 1 {
			t.Errorf("%d had the lock at once", most.Load())
		}
		if took := time.Since(begin); took != 200*time.Second {
			t.Errorf("20 turns of 10 s took %v", took)
		}
	})
}

// When the broker is away, the context ends before another can have the lock, and not long before.
//
// Lesson: L41
func TestLockEndsInTime(t *testing.T) {
	virtual(t, func(t *testing.T, b *ferry.Broker, f *faulty.Driver) {
		l := acquire(t, b, cluster.LockOptions{TTL: 10 * time.Second})
		pause(4 * time.Second) // renewed once
		begin := time.Now()
		f.Set(faulty.Write, faulty.Fail(ferry.ErrNotApplied))
		<-l.Context().Done()
		ended := time.Since(begin)
		if !errors.Is(context.Cause(l.Context()), ferry.ErrLeaseLost) || !errors.Is(l.Err(), ferry.ErrLeaseLost) {
			t.Errorf("cause %v, error %v", context.Cause(l.Context()), l.Err())
		}
		f.Set(faulty.Write, nil)
		next, err := cluster.Acquire(context.Background(), b, "report", cluster.LockOptions{})
		if err != nil {
			t.Fatal(err)
		}
		free := time.Since(begin)
		if gap := free - ended; gap < time.Second || gap > time.Second+100*time.Millisecond {
			t.Errorf("the context ended after %v, another had the lock after %v", ended, free)
		}
		if err := l.Release(context.Background()); !errors.Is(err, ferry.ErrLeaseLost) {
			t.Errorf("Release of a lost lock: %v", err)
		}
		if next.Err() != nil {
			t.Errorf("the late release took the lock from its next holder: %v", next.Err())
		}
		release(t, next)
	})
}

// A lock that somebody deletes, or that a broker has forgotten, is not believed to be held: it is found out with the
// next renewal.
//
// Lesson: L41
func TestLockIsTakenAway(t *testing.T) {
	virtual(t, func(t *testing.T, b *ferry.Broker, _ *faulty.Driver) {
		l := acquire(t, b, cluster.LockOptions{TTL: 9 * time.Second})
		pause(time.Second)
		if r := b.Driver().KV().Apply(context.Background(), cluster.DefaultBucket, driver.KVOptions{},
			driver.Write{Name: "report", Delete: true})[0]; r.Err != nil {
			t.Fatal(r.Err)
		}
		next := acquire(t, b, cluster.LockOptions{})
		pause(2100 * time.Millisecond)
		if !errors.Is(l.Err(), ferry.ErrLeaseLost) || !errors.Is(context.Cause(l.Context()), ferry.ErrLeaseLost) {
			t.Errorf("a third of the TTL later: %v, %v", l.Err(), context.Cause(l.Context()))
		}
		if err := l.Release(context.Background()); !errors.Is(err, ferry.ErrLeaseLost) || next.Err() != nil {
			t.Errorf("Release: %v; the next holder: %v", err, next.Err())
		}
		release(t, next)
	})
}

// A write under an older epoch is refused once another holds the lock, however late it comes.
func TestFenceRefusesALateWrite(t *testing.T) {
	virtual(t, func(t *testing.T, b *ferry.Broker, f *faulty.Driver) {
		kv, ctx := b.Driver().KV(), context.Background()
		old := acquire(t, b, cluster.LockOptions{Bucket: "billing"})
		write := func(l *cluster.Lock, text string) error {
			return kv.Apply(ctx, "billing", driver.KVOptions{},
				driver.Write{Name: "state", Data: []byte(text), Fence: l.Fence()})[0].Err
		}
		if err := write(old, "old"); err != nil {
			t.Fatal(err)
		}
		// the old holder is paused: nothing of it arrives
		f.Set(faulty.Write, func(_ context.Context, c faulty.Call, _ func()) error {
			if c.Write.Quiet {
				return ferry.ErrNotApplied
			}
			return nil
		})
		pause(10 * time.Second)
		f.Set(faulty.Write, nil)
		next := acquire(t, b, cluster.LockOptions{Bucket: "billing"})
		if err := write(next, "new"); err != nil {
			t.Error(err)
		}
		if err := write(old, "late"); !errors.Is(err, ferry.ErrLeaseLost) {
			t.Errorf("a late write: %v", err)
		}
		vs, err := kv.Get(ctx, "billing", "state")
		if err != nil || string(vs[0].Data) != "new" {
			t.Errorf("the state is %q, %v", vs[0].Data, err)
		}
		_ = old.Release(ctx)
		release(t, next)
	})
}

// An answer that is lost is found out: the lock that was taken, renewed or released is known to be.
func TestLockWithLostAnswers(t *testing.T) {
	virtual(t, func(t *testing.T, b *ferry.Broker, f *faulty.Driver) {
		f.Set(faulty.Write, faulty.EverySecond(faulty.Lose(ferry.ErrUnknown)))
		l := acquire(t, b, cluster.LockOptions{})
		pause(10 * time.Minute)
		if l.Err() != nil {
			t.Errorf("the lock was lost with an answer: %v", l.Err())
		}
		release(t, l)
		begin := time.Now()
		release(t, acquire(t, b, cluster.LockOptions{}))
		if took := time.Since(begin); took > time.Second {
			t.Errorf("a released lock was free after %v", took)
		}
	})
}

// A renewal that is not known to have the level that was asked for does not count.
func TestLockAtALevel(t *testing.T) {
	virtual(t, func(t *testing.T, b *ferry.Broker, f *faulty.Driver) {
		l := acquire(t, b, cluster.LockOptions{TTL: 10 * time.Second, Level: b.Driver().Capabilities().Durability})
		pause(time.Minute)
		if l.Err() != nil {
			t.Fatalf("while it is given: %v", l.Err())
		}
		// it is applied, and then found, but never confirmed
		f.Set(faulty.Write, faulty.EverySecond(faulty.Lose(ferry.ErrUnknown)))
		pause(10 * time.Second)
		if !errors.Is(l.Err(), ferry.ErrLeaseLost) || l.Context().Err() == nil {
			t.Errorf("a lock that was never confirmed: %v", l.Err())
		}
		f.Set(faulty.Write, nil)
		_ = l.Release(context.Background())
	})
}

// A lock that was taken without our knowledge, longer ago than it can be relied on, is not taken for held.
func TestLockWhoseAnswerComesTooLate(t *testing.T) {
	virtual(t, func(t *testing.T, b *ferry.Broker, f *faulty.Driver) {
		f.Set(faulty.Write, faulty.Lose(ferry.ErrUnknown))
		time.AfterFunc(20*time.Second, func() { f.Set(faulty.Write, nil) })
		l, err := cluster.Acquire(context.Background(), b, "report", cluster.LockOptions{})
		if err != nil {
			t.Fatal(err)
		}
		pause(time.Minute)
		if l.Err() != nil {
			t.Errorf("%v", l.Err())
		}
		release(t, l)
	})
}

func TestTryAcquireGivesUp(t *testing.T) {
	virtual(t, func(t *testing.T, b *ferry.Broker, f *faulty.Driver) {
		for _, kind := range []error{ferry.ErrNotApplied, ferry.ErrUnknown, ferry.ErrUnsupported} {
			f.Set(faulty.Write, faulty.Fail(kind))
			begin := time.Now()
			if _, err := cluster.TryAcquire(context.Background(), b, "report", cluster.LockOptions{}); !errors.Is(err, kind) {
				t.Errorf("%v: got %v", kind, err)
			}
			if took := time.Since(begin); took > time.Second {
				t.Errorf("%v: it took %v", kind, took)
			}
		}
	})
}

// A lock that was taken although nobody waited for the answer any more is given up: nobody has to wait for its TTL.
func TestAbandonedLockIsGivenUp(t *testing.T) {
	virtual(t, func(t *testing.T, b *ferry.Broker, f *faulty.Driver) {
		o := cluster.LockOptions{TTL: time.Minute}
		for name, try := range map[string]func() (*cluster.Lock, error){
			"TryAcquire": func() (*cluster.Lock, error) { return cluster.TryAcquire(context.Background(), b, "report", o) },
			"Acquire": func() (*cluster.Lock, error) {
				return cluster.Acquire(context.Background(), b, "report", cluster.LockOptions{TTL: o.TTL, Wait: time.Second})
			},
		} {
			f.Set(faulty.Write, faulty.Lose(ferry.ErrUnknown)) // it is applied all the same
			if _, err := try(); !errors.Is(err, ferry.ErrUnknown) {
				t.Fatalf("%s: %v", name, err)
			}
			f.Set(faulty.Write, nil)
			pause(2 * time.Second)
			release(t, acquire(t, b, o))
		}
	})
}

// One that another has by then is left alone.
func TestAbandonedLockIsLeftToItsHolder(t *testing.T) {
	virtual(t, func(t *testing.T, b *ferry.Broker, f *faulty.Driver) {
		f.Set(faulty.Write, faulty.Fail(ferry.ErrUnknown)) // it is not applied
		if _, err := cluster.TryAcquire(context.Background(), b, "report",
			cluster.LockOptions{}); !errors.Is(err, ferry.ErrUnknown) {
			t.Fatal(err)
		}
		f.Set(faulty.Write, nil)
		l := acquire(t, b, cluster.LockOptions{})
		pause(time.Minute)
		if l.Err() != nil {
			t.Errorf("%v", l.Err())
		}
		release(t, l)
	})
}

// Acquire waits no longer than it is told to, and says who had the lock.
func TestAcquireWaits(t *testing.T) {
	virtual(t, func(t *testing.T, b *ferry.Broker, _ *faulty.Driver) {
		l := acquire(t, b, cluster.LockOptions{Owner: "web-1"})
		begin := time.Now()
		_, err := cluster.Acquire(context.Background(), b, "report", cluster.LockOptions{Wait: 7 * time.Second})
		if !errors.Is(err, ferry.ErrConflict) || !strings.Contains(err.Error(), "web-1") ||
			!strings.Contains(err.Error(), "7s") || time.Since(begin) != 7*time.Second {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		if errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "Acquire") {
			t.Errorf("the wait of the options looks like something else: %v", err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err = cluster.Acquire(ctx, b, "report", cluster.LockOptions{Wait: 7 * time.Second})
		if !errors.Is(err, ferry.ErrConflict) || !errors.Is(err, context.DeadlineExceeded) ||
			!strings.Contains(err.Error(), "web-1") {
			t.Errorf("after the context of the caller: %v", err)
		}
		release(t, l)
	})
}

// Where Wait is over before the broker answered, that is no deadline of the caller either.
func TestAcquireWaitsForTheBroker(t *testing.T) {
	virtual(t, func(t *testing.T, b *ferry.Broker, f *faulty.Driver) {
		f.Set(faulty.Write, faulty.Fail(driver.NewError(ferry.ErrNotApplied, "the server did not answer",
			"see whether it runs", context.DeadlineExceeded)))
		_, err := cluster.Acquire(context.Background(), b, "report", cluster.LockOptions{Wait: 7 * time.Second})
		if !errors.Is(err, ferry.ErrNotApplied) || errors.Is(err, context.DeadlineExceeded) ||
			!strings.Contains(err.Error(), "did not answer") {
			t.Errorf("%v", err)
		}
	})
}

// overwrite puts data in the place of the lock, with a write that demands nothing and so keeps its epoch.
func overwrite(t *testing.T, b *ferry.Broker, data string) {
	t.Helper()
	if r := b.Driver().KV().Apply(context.Background(), cluster.DefaultBucket, driver.KVOptions{},
		driver.Write{Name: "report", Data: []byte(data)})[0]; r.Err != nil {
		t.Fatal(r.Err)
	}
}

func wantData(t *testing.T, b *ferry.Broker, want string) {
	t.Helper()
	vs, err := b.Driver().KV().Get(context.Background(), cluster.DefaultBucket, "report")
	if err != nil || vs[0].Revision == 0 || string(vs[0].Data) != want {
		t.Errorf("there is %q, %v; want %q", vs[0].Data, err, want)
	}
}

// A value that another wrote in the place of a lock is neither taken for it nor replaced nor deleted, although it has
// the epoch of the lock.
func TestLockIsOverwritten(t *testing.T) {
	for name, data := range map[string]string{"no lock": "theirs", "another lock": `{"owner":"them","token":"other"}`} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, b *ferry.Broker, _ *faulty.Driver) {
				l := acquire(t, b, cluster.LockOptions{TTL: 9 * time.Second})
				overwrite(t, b, data)
				pause(4 * time.Second)
				if !errors.Is(l.Err(), ferry.ErrLeaseLost) || !errors.Is(context.Cause(l.Context()), ferry.ErrLeaseLost) {
					t.Errorf("after a renewal: %v, %v", l.Err(), context.Cause(l.Context()))
				}
				if err := l.Release(context.Background()); !errors.Is(err, ferry.ErrLeaseLost) {
					t.Errorf("Release: %v", err)
				}
				wantData(t, b, data)
			})
		})
	}
}

// The same, where the release is what finds it.
func TestReleaseLeavesWhatIsNotItsOwn(t *testing.T) {
	virtual(t, func(t *testing.T, b *ferry.Broker, _ *faulty.Driver) {
		l := acquire(t, b, cluster.LockOptions{})
		overwrite(t, b, "theirs")
		if err := l.Release(context.Background()); !errors.Is(err, ferry.ErrLeaseLost) {
			t.Errorf("Release: %v", err)
		}
		wantData(t, b, "theirs")
	})
}

// A lock is released under whatever revision a renewal gave it whose answer was lost.
func TestReleaseAfterALostRenewal(t *testing.T) {
	virtual(t, func(t *testing.T, b *ferry.Broker, f *faulty.Driver) {
		l := acquire(t, b, cluster.LockOptions{})
		f.Set(faulty.Write, func(_ context.Context, c faulty.Call, do func()) error {
			if c.Write.Quiet {
				do()
				return ferry.ErrUnknown
			}
			return nil
		})
		pause(2 * time.Second)
		release(t, l)
		release(t, acquire(t, b, cluster.LockOptions{}))
	})
}

// What is no lock is not waited for: it may stay for ever.
func TestAcquireOfWhatIsNoLock(t *testing.T) {
	virtual(t, func(t *testing.T, b *ferry.Broker, _ *faulty.Driver) {
		overwrite(t, b, "theirs")
		_, want := cluster.TryAcquire(context.Background(), b, "report", cluster.LockOptions{})
		begin := time.Now()
		_, err := cluster.Acquire(context.Background(), b, "report", cluster.LockOptions{Wait: time.Hour})
		if !errors.Is(err, ferry.ErrConflict) || err.Error() != want.Error() || time.Since(begin) != 0 {
			t.Errorf("after %v: %v, want %v", time.Since(begin), err, want)
		}
		wantData(t, b, "theirs")
	})
}

func TestAcquireOfWhatBecomesNoLock(t *testing.T) {
	virtual(t, func(t *testing.T, b *ferry.Broker, _ *faulty.Driver) {
		l := acquire(t, b, cluster.LockOptions{})
		time.AfterFunc(time.Second, func() { overwrite(t, b, "theirs") })
		begin := time.Now()
		_, err := cluster.Acquire(context.Background(), b, "report", cluster.LockOptions{Wait: time.Hour})
		if !errors.Is(err, ferry.ErrConflict) || !strings.Contains(err.Error(), "no lock") ||
			time.Since(begin) != time.Second {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		_ = l.Release(context.Background())
	})
}

// A lock ends with the context it was acquired with, and is free at once.
func TestLockEndsWithItsContext(t *testing.T) {
	virtual(t, func(t *testing.T, b *ferry.Broker, _ *faulty.Driver) {
		ctx, cancel := context.WithCancel(context.Background())
		l, err := cluster.Acquire(ctx, b, "report", cluster.LockOptions{})
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		begin := time.Now()
		next, err := cluster.Acquire(context.Background(), b, "report", cluster.LockOptions{})
		if err != nil || time.Since(begin) != 0 {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		release(t, l)
		release(t, next)
	})
}

// Switched off, a lock costs nothing and is always held. An optional one lets the work go on when the broker is away,
// and no further.
func TestLocksThatAreNotTaken(t *testing.T) {
	virtual(t, func(t *testing.T, b *ferry.Broker, f *faulty.Driver) {
		off := acquire(t, b, cluster.LockOptions{Off: true})
		if off.Err() != nil || off.Fence() != nil || off.Epoch() != 0 || f.Calls(faulty.Write) != 0 {
			t.Errorf("off: %v, fence %v, %d writes", off.Err(), off.Fence(), f.Calls(faulty.Write))
		}
		release(t, off)
		f.Set(faulty.Write, faulty.Fail(ferry.ErrNotApplied))
		optional := acquire(t, b, cluster.LockOptions{Optional: true})
		if optional.Err() == nil || optional.Context().Err() != nil || optional.Fence() != nil {
			t.Errorf("optional: %v, context %v", optional.Err(), optional.Context().Err())
		}
		release(t, optional)
		f.Set(faulty.Write, nil)
		optional = acquire(t, b, cluster.LockOptions{Optional: true})
		if _, err := cluster.TryAcquire(context.Background(), b, "report",
			cluster.LockOptions{Optional: true}); !errors.Is(err, ferry.ErrConflict) {
			t.Errorf("an optional lock that another holds: %v", err)
		}
		f.Set(faulty.Write, faulty.Fail(ferry.ErrNotApplied))
		pause(time.Minute)
		if optional.Err() == nil || optional.Context().Err() != nil {
			t.Errorf("optional, after the broker was away: %v, context %v", optional.Err(), optional.Context().Err())
		}
		f.Set(faulty.Write, nil)
		_ = optional.Release(context.Background())
	})
}

func TestLockMetrics(t *testing.T) {
	virtual(t, func(t *testing.T, b *ferry.Broker, f *faulty.Driver) {
		var m cluster.LockMetrics
		for _, held := range []time.Duration{2 * time.Second, 3 * time.Second} {
			l := acquire(t, b, cluster.LockOptions{Metrics: &m})
			if _, err := cluster.TryAcquire(context.Background(), b, "report", cluster.LockOptions{Metrics: &m}); err == nil {
				t.Error("two have the lock")
			}
			time.Sleep(held)
			release(t, l)
		}
		l := acquire(t, b, cluster.LockOptions{Metrics: &m})
		f.Set(faulty.Write, faulty.Fail(ferry.ErrNotApplied))
		<-l.Context().Done()
		_ = l.Release(context.Background())
		want := cluster.LockStats{Acquired: 3, Failed: 2, Expired: 1, Released: 2, Held: 5 * time.Second,
			Longest: 3 * time.Second}
		if got := m.Stats(); got != want {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	})
}

func TestLockIsRefused(t *testing.T) {
	virtual(t, func(t *testing.T, b *ferry.Broker, f *faulty.Driver) {
		cases := map[string]struct {
			name string
			o    cluster.LockOptions
		}{
			"no name":           {"", cluster.LockOptions{}},
			"a long name":       {strings.Repeat("x", 513), cluster.LockOptions{}},
			"a bad bucket":      {"a", cluster.LockOptions{Bucket: "no spaces"}},
			"a short TTL":       {"a", cluster.LockOptions{TTL: 999 * time.Millisecond}},
			"a negative wait":   {"a", cluster.LockOptions{Wait: -1}},
			"a very long owner": {"a", cluster.LockOptions{Owner: strings.Repeat("x", 1000)}},
		}
		for _, bucket := range []string{"schedules", "schedules.progress", "members", "commands",
			"results.00", "lead.reports"} {
			cases["the bucket "+bucket] = struct {
				name string
				o    cluster.LockOptions
			}{"a", cluster.LockOptions{Bucket: bucket}}
		}
		for name, c := range cases {
			for how, acquire := range map[string]func(context.Context, *ferry.Broker, string, cluster.LockOptions) (
				*cluster.Lock, error){
				"Acquire": cluster.Acquire, "TryAcquire": cluster.TryAcquire,
			} {
				if _, err := acquire(context.Background(), b, c.name, c.o); !errors.Is(err, ferry.ErrInvalid) ||
					!strings.Contains(err.Error(), "hint") {
					t.Errorf("%s of %s: %v", how, name, err)
				}
			}
		}
		if _, err := cluster.Acquire(context.Background(), nil, "a",
			cluster.LockOptions{}); !errors.Is(err, ferry.ErrInvalid) {
			t.Errorf("no broker: %v", err)
		}
		if f.Calls(faulty.Write) != 0 {
			t.Errorf("%d writes", f.Calls(faulty.Write))
		}
	})
}
