package worker_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/worker"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // what fails here is meant to
	goleak.VerifyTestMain(m)
}

const topic = "orders"

// virtual runs a test in virtual time.
func virtual(t *testing.T, f func(t *testing.T, r *rig)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { f(t, newRig(t, nil, ferry.Hooks{})) })
}

// broken runs a test in virtual time on a broker whose subscriptions can be made to fail.
func broken(t *testing.T, f func(t *testing.T, r *rig, d *faulty)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := new(faulty)
		r := newRig(t, func(inner driver.Driver) driver.Driver { d.Driver = inner; return d }, ferry.Hooks{})
		f(t, r, d)
	})
}

// rig is a memory broker, perhaps behind a wrapper that injects failures.
type rig struct {
	t      *testing.T
	memory *memory.Driver
	broker *ferry.Broker
}

func newRig(t *testing.T, wrap func(driver.Driver) driver.Driver, hooks ferry.Hooks) *rig {
	t.Helper()
	r := &rig{t: t, memory: newMemory(t, memory.Options{})}
	var d driver.Driver = r.memory
	if wrap != nil {
		d = wrap(d)
	}
	b, err := ferry.New(d, ferry.Options{Hooks: hooks})
	if err != nil {
		t.Fatal(err)
	}
	r.broker = b
	t.Cleanup(func() { _ = r.memory.Close(context.Background()) })
	return r
}

// publish publishes one message for each body, with the options for all.
func (r *rig) publish(topic string, bodies []string, opts ...ferry.PublishOption) {
	r.t.Helper()
	for _, body := range bodies {
		if _, err := ferry.Publish(context.Background(), r.broker, topic, []byte(body), opts...); err != nil {
			r.t.Fatal(err)
		}
	}
}

// keyed publishes key:0, key:1, ... key:n-1.
func (r *rig) keyed(topic, key string, n int) {
	r.t.Helper()
	for i := range n {
		r.publish(topic, []string{fmt.Sprintf("%s:%d", key, i)}, ferry.Key(key))
	}
}

func numbered(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprint(i)
	}
	return all
}

// start runs w. The function it returns stops it and returns what Run returned.
func start(t *testing.T, w *worker.Worker) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = w.Run(ctx)
	}()
	stop = func() error {
		cancel()
		<-done
		return err
	}
	t.Cleanup(func() { _ = stop() })
	return stop
}

func mustStop(t *testing.T, stop func() error) {
	t.Helper()
	if err := stop(); err != nil {
		t.Errorf("Run returned %v, want nil", err)
	}
}

// group returns the counts of the default group.
func (r *rig) group(topic string) driver.GroupStats {
	r.t.Helper()
	s, err := r.memory.Stats(context.Background(), topic)
	if err != nil {
		r.t.Fatal(err)
	}
	return s.Groups[0]
}

// browse returns the entries of the default group in one state.
func (r *rig) browse(topic string, state driver.State) []driver.Entry {
	r.t.Helper()
	p, err := r.memory.Browse(context.Background(), driver.Query{Topic: topic, Group: driver.DefaultGroup, State: state})
	if err != nil {
		r.t.Fatal(err)
	}
	return p.Entries
}

// dead returns the only dead letter.
func (r *rig) dead(topic string) *driver.DeadLetter {
	r.t.Helper()
	entries := r.browse(topic, driver.StateDead)
	if len(entries) != 1 {
		r.t.Fatalf("%d dead letters, want 1", len(entries))
	}
	return entries[0].Dead
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
	return append([]string(nil), j.lines...)
}

func body(d *ferry.Delivery) string { return string(d.Body) }

// pause waits until everything that can happen now has happened, then lets d pass.
func pause(d time.Duration) {
	synctest.Wait()
	time.Sleep(d)
	synctest.Wait()
}

func equal[T comparable](t *testing.T, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
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
