package result_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/internal/redistest"
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
		faults := new(faults)
		f(t, newRig(t, &faulty{inner, faults}, faults, ferry.Hooks{}))
	})
}

// rig is a broker with one worker that keeps results.
type rig struct {
	t      *testing.T
	broker *ferry.Broker
	faults *faults
	worker *worker.Worker
}

func newRig(t *testing.T, d driver.Driver, f *faults, hooks ferry.Hooks) *rig {
	t.Helper()
	b, err := ferry.New(d, ferry.Options{Hooks: hooks})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close(context.Background()) })
	return &rig{t: t, broker: b, faults: f}
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
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		if err := r.worker.Run(ctx); err != nil {
			r.t.Error(err)
		}
	})
	r.t.Cleanup(func() {
		cancel()
		all.Wait()
	})
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

// faults say what becomes of writes, and of waiting for them.
type faults struct {
	mu sync.Mutex
	// before fails a write without applying it, after fails its answer; nil lets it through.
	before, after func(w driver.Write) error
	wait          error
	writes        int
	lostAcks      int // so many settlements never reach the broker, as if the process had ended before
}

func (f *faults) set(before, after func(w driver.Write) error, wait error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before, f.after, f.wait = before, after, wait
}

func (f *faults) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writes
}

// always fails every write, first only the first.
func always(err error) func(driver.Write) error { return func(driver.Write) error { return err } }

func first(err error) func(driver.Write) error {
	var once sync.Once
	return func(driver.Write) (out error) {
		once.Do(func() { out = err })
		return out
	}
}

type faulty struct {
	driver.Driver
	faults *faults
}

func (d *faulty) Subscribe(ctx context.Context, o driver.SubscribeOptions) (driver.Subscription, error) {
	s, err := d.Driver.Subscribe(ctx, o)
	return &faultySubscription{s, d.faults}, err
}

type faultySubscription struct {
	driver.Subscription
	faults *faults
}

func (s *faultySubscription) Settle(ctx context.Context, ss []driver.Settlement) []error {
	errs := make([]error, len(ss))
	for i := range ss {
		s.faults.mu.Lock()
		lost := s.faults.lostAcks > 0 && ss[i].Outcome == driver.Ack
		if lost {
			s.faults.lostAcks--
		}
		s.faults.mu.Unlock()
		if lost {
			errs[i] = driver.ErrLeaseLost
		} else {
			errs[i] = s.Subscription.Settle(ctx, ss[i:i+1])[0]
		}
	}
	return errs
}

func (d *faulty) KV() driver.KV { return &faultyKV{d.Driver.KV(), d.faults} }

type faultyKV struct {
	driver.KV
	faults *faults
}

func (k *faultyKV) Apply(ctx context.Context, bucket string, o driver.KVOptions,
	ws ...driver.Write) []driver.WriteResult {
	results := make([]driver.WriteResult, len(ws))
	for i, w := range ws {
		k.faults.mu.Lock()
		k.faults.writes++
		before, after := k.faults.before, k.faults.after
		k.faults.mu.Unlock()
		if before != nil {
			if results[i].Err = before(w); results[i].Err != nil {
				continue
			}
		}
		results[i] = k.KV.Apply(ctx, bucket, o, w)[0]
		if after != nil {
			if err := after(w); err != nil {
				results[i] = driver.WriteResult{Err: err}
			}
		}
	}
	return results
}

func (k *faultyKV) Wait(ctx context.Context, bucket, name string, after uint64) (driver.Value, error) {
	k.faults.mu.Lock()
	err := k.faults.wait
	k.faults.mu.Unlock()
	if err != nil {
		return driver.Value{}, err
	}
	return k.KV.Wait(ctx, bucket, name, after)
}
