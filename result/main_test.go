package result_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/internal/faulty"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/internal/runtest"
	"github.com/ferrymq/ferry/result"
	"github.com/ferrymq/ferry/worker"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // what fails here is meant to
	goleak.VerifyTestMain(redistest.Main(m))
}

const (
	topic = "reports"
	group = "default"
)

// virtual runs a test in virtual time, on a broker whose values can be made to fail.
func virtual(t *testing.T, f func(t *testing.T, r *rig)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inner, err := memory.New(context.Background(), memory.Options{})
		if err != nil {
			t.Fatal(err)
		}
		f(t, newRig(t, faulty.New(inner), ferry.Hooks{}))
	})
}

// rig is a broker with one worker that keeps results.
type rig struct {
	t      *testing.T
	broker *ferry.Broker
	driver *faulty.Driver
	worker *worker.Worker
}

func newRig(t *testing.T, d *faulty.Driver, hooks ferry.Hooks) *rig {
	t.Helper()
	b, err := ferry.New(d, ferry.Options{Hooks: hooks})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close(context.Background()) })
	return &rig{t: t, broker: b, driver: d}
}

func (r *rig) keep(o result.Options) worker.Middleware {
	r.t.Helper()
	keep, err := result.Keep(r.broker, o)
	if err != nil {
		r.t.Fatal(err)
	}
	return keep
}

// handle runs a worker with one handler, whose results are kept, until the test ends.
func (r *rig) handle(h worker.Handler, opts ...worker.HandlerOption) {
	r.t.Helper()
	r.work(h, append(opts, worker.Use(r.keep(result.Options{})))...)
}

func (r *rig) work(h worker.Handler, opts ...worker.HandlerOption) {
	r.t.Helper()
	r.worker = worker.New(r.broker, worker.Options{Concurrency: 4})
	worker.HandleRaw(r.worker, topic, h, opts...)
	runtest.Start(r.t, r.worker.Run)
	<-r.worker.Ready()
}

func (r *rig) publish(body string, opts ...ferry.PublishOption) (id string) {
	r.t.Helper()
	receipt, err := ferry.Publish(context.Background(), r.broker, topic, []byte(body), opts...)
	if err != nil {
		r.t.Fatal(err)
	}
	return receipt.ID
}

// is demands a status, and returns it.
func (r *rig) is(id string, want result.State, text string) result.Status {
	r.t.Helper()
	s, err := result.Get(context.Background(), r.broker, topic, group, id)
	if err != nil || s.State != want || s.Error != text {
		r.t.Errorf("it is %s (%q), %v; want %s (%q)", s.State, s.Error, err, want, text)
	}
	return s
}

// pause waits until everything that can happen now has happened, then lets d pass.
func pause(d time.Duration) {
	synctest.Wait()
	time.Sleep(d)
	synctest.Wait()
}
