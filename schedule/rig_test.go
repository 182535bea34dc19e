package schedule_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/internal/faulty"
	"github.com/ferrymq/ferry/internal/runtest"
	"github.com/ferrymq/ferry/schedule"
)

const topic = "jobs"

// begin is when virtual time begins: midnight in UTC.
var begin = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// rig is a broker, whoever runs schedules on it, and a consumer of what they publish.
type rig struct {
	*testing.T
	d      driver.Driver
	faults *faulty.Driver // of d, in virtual time
	b      *ferry.Broker
	s      *schedule.Scheduler // runs nothing: for edits
	sub    driver.Subscription
	stops  []func()

	mu    sync.Mutex
	fires []fire
}

// fire is one message that a schedule published.
type fire struct {
	name, tick, body, id string
	at                   time.Time // when it was claimed, by the broker's clock
}

// virtual runs a test in virtual time on a memory broker, which wrap may put something in front of.
func virtual(t *testing.T, wrap func(driver.Driver) driver.Driver, test func(r *rig)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, err := memory.New(context.Background(), memory.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var d driver.Driver = m
		if wrap != nil {
			d = wrap(d)
		}
		f := faulty.New(d)
		r := newRig(t, f)
		r.faults = f
		test(r)
		r.end()
	})
}

// newRig starts a consumer on a driver, which belongs to the rig from now on.
func newRig(t *testing.T, d driver.Driver) *rig {
	t.Helper()
	r := &rig{T: t, d: d}
	var err error
	if r.b, err = ferry.New(d, ferry.Options{}); err != nil {
		t.Fatal(err)
	}
	r.s = r.scheduler()
	r.sub, err = d.Subscribe(context.Background(), driver.SubscribeOptions{Topic: topic, Instance: "rig"})
	r.ok(err)
	ctx, cancel := context.WithCancel(context.Background())
	consumed := make(chan struct{})
	go func() { defer close(consumed); r.consume(ctx) }()
	t.Cleanup(func() {
		r.end()
		cancel()
		<-consumed
		_ = r.b.Close(context.Background())
	})
	return r
}

func (r *rig) consume(ctx context.Context) {
	for ctx.Err() == nil {
		ds, err := r.sub.Receive(ctx, 100)
		if err != nil {
			return
		}
		var list []driver.Settlement
		r.mu.Lock()
		for _, d := range ds {
			r.fires = append(r.fires, fire{d.Headers[schedule.HeaderName], d.Headers[schedule.HeaderTick], string(d.Body),
				d.ID, d.ClaimedAt})
			list = append(list, driver.Settlement{Delivery: d})
		}
		r.mu.Unlock()
		if err := errors.Join(r.sub.Settle(ctx, list)...); err != nil {
			r.Error(err)
		}
	}
}

func (r *rig) ok(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// wants demands an error of a kind.
func (r *rig) wants(err, kind error) {
	r.Helper()
	if !errors.Is(err, kind) {
		r.Fatalf("got %v, want %v", err, kind)
	}
}

func (r *rig) scheduler() *schedule.Scheduler {
	r.Helper()
	s, err := schedule.New(r.b, schedule.Options{})
	r.ok(err)
	return s
}

// run starts a scheduler, and returns what stops it.
func (r *rig) run() (stop func()) {
	r.Helper()
	stop = runtest.Start(r, r.scheduler().Run)
	r.stops = append(r.stops, stop)
	return stop
}

func (r *rig) end() {
	for _, stop := range r.stops {
		stop()
	}
}

// pass lets virtual time pass until so long after the begin.
func (r *rig) pass(until time.Duration) {
	time.Sleep(time.Until(begin.Add(until)))
	synctest.Wait()
}

func message(body string) *ferry.Message {
	return &ferry.Message{Topic: topic, Body: []byte(body), ContentType: "text/plain"}
}

func (r *rig) put(s schedule.Schedule) {
	r.Helper()
	if s.Message == nil {
		s.Message = message(s.Name)
	}
	r.ok(r.s.Put(context.Background(), s))
}

// fired returns what was published since it was asked last.
func (r *rig) fired() []fire {
	r.mu.Lock()
	defer r.mu.Unlock()
	fires := r.fires
	r.fires = nil
	return fires
}

// expect demands that exactly these ticks fired since it was asked last, given as times after the begin, each when it
// was due.
func (r *rig) expect(ticks ...time.Duration) {
	r.Helper()
	fires := r.fired()
	if len(fires) != len(ticks) {
		r.Fatalf("%d fires, want %d: %+v", len(fires), len(ticks), fires)
	}
	for i, f := range fires {
		if at := begin.Add(ticks[i]); f.tick != at.Format(time.RFC3339Nano) || !f.at.Equal(at) {
			r.Errorf("fire %d is of %s, at %s; want %s", i, f.tick, f.at, at)
		}
	}
}

// expectOf demands that exactly these ticks fired since it was asked last, whenever that was.
func (r *rig) expectOf(ticks ...time.Duration) []fire {
	r.Helper()
	fires := r.fired()
	if len(fires) != len(ticks) {
		r.Fatalf("%d fires, want %d: %+v", len(fires), len(ticks), fires)
	}
	for i, f := range fires {
		if at := begin.Add(ticks[i]); f.tick != at.Format(time.RFC3339Nano) || f.at.Before(at) {
			r.Errorf("fire %d is of %s, at %s; want %s", i, f.tick, f.at, at)
		}
	}
	return fires
}

func (r *rig) status(name string) schedule.Status {
	r.Helper()
	st, err := r.s.Get(context.Background(), name)
	r.ok(err)
	return st
}

// lying returns how many ticks lie in the internal topic.
func (r *rig) lying() int64 {
	r.Helper()
	st, err := r.d.Stats(context.Background(), schedule.Topic)
	if errors.Is(err, ferry.ErrNotFound) {
		return 0
	}
	r.ok(err)
	n := st.Delayed
	for _, g := range st.Groups {
		n += g.Ready + g.Inflight + g.Waiting
	}
	return n
}
