package unique_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/internal/faulty"
	"github.com/ferrymq/ferry/internal/kafkatest"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/internal/runtest"
	"github.com/ferrymq/ferry/worker"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // what fails here is meant to
	goleak.VerifyTestMain(kafkatest.Main(redistest.Main(m)))
}

const topic = "reports"

var errBilling = errors.New("timeout to billing")

// rig is a broker whose answers a test can change.
type rig struct {
	t      *testing.T
	ctx    context.Context
	broker *ferry.Broker
	driver *faulty.Driver
}

// virtual runs a test in virtual time.
func virtual(t *testing.T, f func(t *testing.T, r *rig)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, err := memory.New(context.Background(), memory.Options{})
		if err != nil {
			t.Fatal(err)
		}
		f(t, newRig(t, faulty.New(d)))
	})
}

func newRig(t *testing.T, d *faulty.Driver) *rig {
	t.Helper()
	b, err := ferry.New(d, ferry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close(context.Background()) })
	return &rig{t: t, ctx: context.Background(), broker: b, driver: d}
}

// work runs a worker until the test ends, or until the function it returns is called.
func (r *rig) work(group string, h worker.Handler, opts ...worker.HandlerOption) (stop func()) {
	r.t.Helper()
	w := worker.New(r.broker, worker.Options{Concurrency: 8})
	worker.HandleRaw(w, topic, h, append(opts, worker.Group(group))...)
	return run(r.t, w)
}

func run(t *testing.T, w *worker.Worker) (stop func()) {
	t.Helper()
	stop = runtest.Start(t, w.Run)
	<-w.Ready()
	return stop
}

// publish publishes with the unique id "r1" for an hour, unless the options say something else.
func (r *rig) publish(opts ...ferry.PublishOption) (ferry.Receipt, error) {
	return ferry.Publish(r.ctx, r.broker, topic, []byte("x"),
		append([]ferry.PublishOption{ferry.Unique("r1", time.Hour)}, opts...)...)
}

// accepted demands that a publish goes through.
func (r *rig) accepted(opts ...ferry.PublishOption) (id string) {
	r.t.Helper()
	receipt, err := r.publish(opts...)
	if err != nil {
		r.t.Fatal(err)
	}
	return receipt.ID
}

// refused demands that a publish is refused because of the message with this id.
func (r *rig) refused(id string, opts ...ferry.PublishOption) {
	r.t.Helper()
	receipt, err := r.publish(opts...)
	var taken *ferry.UniqueError
	if !errors.Is(err, ferry.ErrConflict) || !errors.As(err, &taken) || taken.ID != id || taken.Topic != topic ||
		taken.Unique != "r1" || receipt.ID != id {
		r.t.Errorf("got %+v, %v; want a refusal because of %s", receipt, err, id)
	}
	var e *ferry.Error
	if !errors.As(err, &e) || e.Hint == "" {
		r.t.Errorf("%v gives no hint", err)
	}
}

// pause waits until everything that can happen now has happened, then lets d pass.
func pause(d time.Duration) {
	synctest.Wait()
	time.Sleep(d)
	synctest.Wait()
}

// values are how many unique ids are taken.
func (r *rig) values() (n int) {
	r.t.Helper()
	for i := range 16 {
		page, err := r.broker.Driver().KV().List(r.ctx, driver.KVQuery{Bucket: "unique." + hex(i)})
		if err != nil {
			r.t.Fatal(err)
		}
		n += len(page.Values)
	}
	return n
}

func hex(i int) string { return string([]byte{"0123456789abcdef"[i/16], "0123456789abcdef"[i%16]}) }
