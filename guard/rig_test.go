package guard_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/guard/store"
	"github.com/ferrymq/ferry/worker"
)

const topic = "messages"

// rig is a memory broker with a worker, in virtual time.
type rig struct {
	t      *testing.T
	ctx    context.Context
	driver *memory.Driver
	broker *ferry.Broker
	start  time.Time
	stop   func()
}

// virtual runs a test in virtual time.
func virtual(t *testing.T, f func(t *testing.T, r *rig)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { f(t, newRig(t, ferry.Hooks{})) })
}

func newRig(t *testing.T, hooks ferry.Hooks) *rig {
	t.Helper()
	r := &rig{t: t, ctx: context.Background(), driver: newMemory(t, memory.Options{}), start: time.Now()}
	b, err := ferry.New(r.driver, ferry.Options{Hooks: hooks})
	if err != nil {
		t.Fatal(err)
	}
	r.broker = b
	t.Cleanup(func() {
		if r.stop != nil {
			r.stop()
		}
		_ = b.Close(r.ctx)
	})
	return r
}

func must[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func (r *rig) publish(body string, opts ...ferry.PublishOption) {
	r.t.Helper()
	if _, err := ferry.Publish(r.ctx, r.broker, topic, []byte(body), opts...); err != nil {
		r.t.Fatal(err)
	}
}

// work runs a worker with a handler behind middleware until the test ends.
func (r *rig) work(handler worker.Handler, o worker.Options, middleware []worker.Middleware,
	opts ...worker.HandlerOption) {
	r.t.Helper()
	w := worker.New(r.broker, o)
	worker.HandleRaw(w, topic, handler, append(opts, worker.Use(middleware...))...)
	ctx, cancel := context.WithCancel(r.ctx)
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	before := r.stop
	r.stop = func() {
		if before != nil {
			before()
		}
		cancel()
		if err := <-done; err != nil {
			r.t.Errorf("the worker ended with %v", err)
		}
	}
	r.t.Cleanup(func() {})
}

// elapsed is the time since the rig was made.
func (r *rig) elapsed() time.Duration { return time.Since(r.start) }

// until lets time pass up to a moment.
func (r *rig) until(at time.Duration) {
	synctest.Wait()
	time.Sleep(at - r.elapsed())
	synctest.Wait()
}

func (r *rig) stats() driver.GroupStats {
	r.t.Helper()
	s, err := r.driver.Stats(r.ctx, topic)
	if err != nil {
		r.t.Fatal(err)
	}
	return s.Groups[0]
}

func (r *rig) dead() []*driver.DeadLetter {
	r.t.Helper()
	p, err := r.driver.Browse(r.ctx, driver.Query{Topic: topic, Group: driver.DefaultGroup, State: driver.StateDead})
	if err != nil {
		r.t.Fatal(err)
	}
	var all []*driver.DeadLetter
	for _, e := range p.Entries {
		all = append(all, e.Dead)
	}
	return all
}

// journal notes what handlers did, in order.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

func (j *journal) all() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.lines)
}

func equal[T comparable](t *testing.T, got []T, want ...T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func memoryStore() guard.Store { return guard.NewMemory(guard.MemoryOptions{}) }

// shaky is a store that can be made to fail.
type shaky struct {
	guard.Store
	mu    sync.Mutex
	err   error
	calls int
}

var errAway = errors.New("connection refused")

func (s *shaky) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *shaky) called() (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	return s.calls, s.err
}

func (s *shaky) Take(ctx context.Context, t store.Take) (guard.Verdict, error) {
	if _, err := s.called(); err != nil {
		return guard.Verdict{}, err
	}
	return s.Store.Take(ctx, t)
}

func (s *shaky) Acquire(ctx context.Context, r store.SlotRequest) (store.Slot, error) {
	if _, err := s.called(); err != nil {
		return store.Slot{}, err
	}
	return s.Store.Acquire(ctx, r)
}

func (s *shaky) Begin(ctx context.Context, r store.MarkRequest) (store.Mark, error) {
	if _, err := s.called(); err != nil {
		return store.Mark{}, err
	}
	return s.Store.Begin(ctx, r)
}

func (s *shaky) Complete(ctx context.Context, r store.MarkRequest) error {
	if _, err := s.called(); err != nil {
		return err
	}
	return s.Store.Complete(ctx, r)
}

// wantError fails unless err is of this kind, says text, and says what to do.
func wantError(t *testing.T, err, kind error, text string) {
	t.Helper()
	var e *driver.Error
	if !errors.Is(err, kind) || !errors.As(err, &e) || e.Hint == "" || !contains(err.Error(), text) {
		t.Errorf("%v; want %v that says %q, with a hint", err, kind, text)
	}
}

// newMemory returns an empty broker in memory.
func newMemory(t testing.TB, o memory.Options) *memory.Driver {
	t.Helper()
	d, err := memory.New(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
