package unique_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/internal/kafkatest"
	"github.com/ferrymq/ferry/internal/redistest"
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
	faults *faulty
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
		faults := &faulty{Driver: d}
		f(t, newRig(t, faults, faults))
	})
}

func newRig(t *testing.T, d driver.Driver, f *faulty) *rig {
	t.Helper()
	b, err := ferry.New(d, ferry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close(context.Background()) })
	return &rig{t: t, ctx: context.Background(), broker: b, faults: f}
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
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		if err := w.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	stop = sync.OnceFunc(func() {
		cancel()
		all.Wait()
	})
	t.Cleanup(stop)
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

// faulty is a driver that fails as a test says. A nil function lets the call through.
type faulty struct {
	driver.Driver

	mu sync.Mutex
	// sent and stored are asked before and after a publish, written and answered before and after a write to a value,
	// settled after a settlement.
	sent, stored      func() error
	written, answered func(w driver.Write) error
	settled           func() error
	slow              func(w driver.Write) bool // the call has no answer until its context ends
	spooled           bool                      // publishes are kept for later, and the driver knows nothing of them
}

func (f *faulty) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *faulty) Publish(ctx context.Context, ms []*driver.Message, o driver.PublishOptions) ([]driver.Receipt, error) {
	f.mu.Lock()
	sent, stored := f.sent, f.stored
	f.mu.Unlock()
	fail := func(err error) ([]driver.Receipt, error) {
		rs := make([]driver.Receipt, len(ms))
		for i := range rs {
			rs[i] = driver.Receipt{ID: ms[i].ID, Err: err}
		}
		return rs, err
	}
	if sent != nil {
		if err := sent(); err != nil {
			return fail(err)
		}
	}
	if f.spooled {
		rs, _ := fail(nil)
		for i := range rs {
			rs[i].Spooled = true
		}
		return rs, nil
	}
	rs, err := f.Driver.Publish(ctx, ms, o)
	if stored != nil {
		if err := stored(); err != nil {
			return fail(err)
		}
	}
	return rs, err
}

func (f *faulty) Subscribe(ctx context.Context, o driver.SubscribeOptions) (driver.Subscription, error) {
	s, err := f.Driver.Subscribe(ctx, o)
	return &faultySubscription{s, f}, err
}

type faultySubscription struct {
	driver.Subscription
	f *faulty
}

func (s *faultySubscription) Settle(ctx context.Context, list []driver.Settlement) []error {
	errs := s.Subscription.Settle(ctx, list)
	s.f.mu.Lock()
	settled := s.f.settled
	s.f.mu.Unlock()
	if settled == nil {
		return errs
	}
	if err := settled(); err != nil {
		for i := range errs {
			errs[i] = err
		}
	}
	return errs
}

func (f *faulty) KV() driver.KV { return &faultyKV{f.Driver.KV(), f} }

type faultyKV struct {
	driver.KV
	f *faulty
}

func (k *faultyKV) Apply(ctx context.Context, bucket string, o driver.KVOptions,
	ws ...driver.Write) []driver.WriteResult {
	results := make([]driver.WriteResult, len(ws))
	for i, w := range ws {
		k.f.mu.Lock()
		written, answered, slow := k.f.written, k.f.answered, k.f.slow
		k.f.mu.Unlock()
		if slow != nil && slow(w) {
			<-ctx.Done()
			results[i].Err = driver.ErrNotApplied
			continue
		}
		if written != nil {
			if results[i].Err = written(w); results[i].Err != nil {
				continue
			}
		}
		results[i] = k.KV.Apply(ctx, bucket, o, w)[0]
		if answered != nil {
			if err := answered(w); err != nil {
				results[i] = driver.WriteResult{Err: err}
			}
		}
	}
	return results
}

// once fails the first call.
func once(err error) func() error {
	var done sync.Once
	return func() (out error) {
		done.Do(func() { out = err })
		return out
	}
}
