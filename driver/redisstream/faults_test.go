package redisstream_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/redisstream"
	"github.com/ferrymq/ferry/internal/redistest"
)

// A server out of memory refuses to publish, and still lets consumers fetch, retry, bury and settle.
func TestFullServerCanBeDrained(t *testing.T) {
	t.Parallel()
	for _, version := range redistest.Versions() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			w := worldOn(t, redistest.Single(t, redistest.Options{Version: version, MaxMemory: "6mb"}))
			w.onePartition()
			s := w.subscribe("host-1", time.Minute)
			n := w.fill()
			ds := w.take(s, 4)
			for i, o := range []driver.Outcome{driver.Retry, driver.Release, driver.Dead, driver.Drop} {
				f := &driver.Failure{Error: "x"}
				if err := s.Settle(t.Context(), []driver.Settlement{{Delivery: ds[i], Outcome: o, Failure: f}})[0]; err != nil {
					t.Fatalf("Settle %s on a full server: %v", o, err)
				}
			}
			for left := n - 2; left > 0; {
				ds, err := s.Receive(w.ctx(), 100)
				w.ok(err)
				w.settle(s, driver.Ack, ds...)
				left -= len(ds)
			}
			w.publish(0, 1, "")
			w.sound()
		})
	}
}

// fill publishes until the server is full, and returns how many it took.
func (w *world) fill() int {
	w.Helper()
	body := make([]byte, 16<<10)
	for n := 0; n < 10_000; n++ {
		_, err := w.d.Publish(w.ctx(), []*driver.Message{{ID: rand.Text(), Topic: "jobs", Body: body}},
			driver.PublishOptions{})
		if errors.Is(err, driver.ErrFull) {
			return n
		}
		w.ok(err)
	}
	w.Fatal("the server is never full")
	return 0
}

// valve is a hook that pauses a client as if its process were stopped: at the first command of a kind, and then at all.
type valve struct {
	quiet
	shut  atomic.Bool
	all   atomic.Bool
	match string
	held  chan struct{} // closed when the first is held back
	open  chan struct{}
	after chan struct{} // closed when the first is answered
}

// wait holds commands back, and tells whether the first is among them.
func (v *valve) wait(cmds ...goredis.Cmder) (first bool) {
	for _, c := range cmds {
		if !v.shut.Load() || !v.all.Load() && !strings.EqualFold(c.Name(), v.match) {
			continue
		}
		if v.all.CompareAndSwap(false, true) {
			close(v.held)
			first = true
		}
		<-v.open
	}
	return first
}

func (v *valve) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		v.wait(cmd)
		return next(ctx, cmd)
	}
}

func (v *valve) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error {
		if v.wait(cmds...) {
			defer close(v.after)
		}
		return next(ctx, cmds)
	}
}

// An owner is paused past its ownership just before it reads, and then goes on: it reads nothing, and what others read
// keeps its order.
func TestOwnerPausedBeforeItReads(t *testing.T) {
	w := newWorld(t)
	w.onePartition()
	v, paused := w.pausable()
	s, err := paused.Subscribe(w.ctx(),
		driver.SubscribeOptions{Topic: "jobs", Instance: "paused", Lease: time.Minute, MaxRun: 100})
	w.ok(err)
	w.publish(0, 200, "k")
	first := w.take(s, 16) // there is more, so that the next time it reads itself
	w.settle(s, driver.Ack, first...)
	v.shut.Store(true)
	handled, done := make(chan string, 1000), make(chan struct{})
	go func() {
		defer close(done)
		for ds, err := s.Receive(t.Context(), 100); err == nil; ds, err = s.Receive(t.Context(), 100) {
			for _, d := range ds {
				handled <- d.ID
			}
		}
	}()
	<-v.held
	w.steal()
	other := w.subscribe("other", time.Minute)
	for i := range 184 {
		d := w.take(other, 1)[0]
		if want := fmt.Sprintf("m%04d", 16+i); d.ID != want {
			t.Fatalf("%s came where %s was due", d.ID, want)
		}
		w.settle(other, driver.Ack, d)
	}
	w.publish(200, 201, "k")
	v.shut.Store(false)
	close(v.open)
	<-v.after   // it has read, or was refused
	go func() { // whoever owns the partition now
		if ds, err := other.Receive(t.Context(), 1); err == nil {
			handled <- ds[0].ID
		}
	}()
	select {
	case id := <-handled:
		if id != "m0200" {
			t.Errorf("%s was delivered again", id)
		}
	case <-w.ctx().Done():
		t.Error("the owner read what it did not own any more: it is lost to the others")
	}
	w.ok(errors.Join(s.Close(w.ctx()), other.Close(w.ctx())))
	<-done
	w.ok(paused.Close(w.ctx()))
	w.sound()
}

// pausable returns a driver beside that of the world, and its valve.
func (w *world) pausable() (*valve, *redisstream.Driver) {
	w.Helper()
	v := &valve{match: "xreadgroup", held: make(chan struct{}), open: make(chan struct{}), after: make(chan struct{})}
	return v, w.beside(v)
}

// steal ends whatever ownership there is, as if its time were over.
func (w *world) steal() {
	w.Helper()
	key := fmt.Sprintf("{%s/jobs/0}:g:default:", w.prefix)
	w.ok(w.c.HSet(w.ctx(), key+"owner", "until", 0).Err())
	w.ok(w.c.Del(w.ctx(), key+"members").Err())
}

// An owner is paused past its lease with deliveries in hand, and then goes on: none of its acknowledgements is
// accepted, and nothing is lost.
func TestOwnerPausedPastItsLease(t *testing.T) {
	w := newWorld(t)
	w.onePartition()
	v, paused := w.pausable()
	s, err := paused.Subscribe(w.ctx(),
		driver.SubscribeOptions{Topic: "jobs", Instance: "paused", Lease: 3 * time.Second, MaxRun: 100})
	w.ok(err)
	w.publish(0, 50, "")
	w.publish(50, 100, "k")
	held := w.take(s, 100)
	v.all.Store(true)
	v.shut.Store(true)
	w.until("every lease is over", func() bool {
		st, err := w.d.Stats(w.ctx(), "jobs")
		w.ok(err)
		return st.Groups[0].Inflight == 0
	})
	other, err := w.d.Subscribe(w.ctx(),
		driver.SubscribeOptions{Topic: "jobs", Instance: "other", Lease: time.Minute, MaxRun: 100})
	w.ok(err)
	again := w.take(other, 100)
	for _, d := range again {
		if d.Deliveries != 2 && d.Cause != driver.CauseReleased {
			t.Errorf("%s came with deliveries %d, cause %v", d.ID, d.Deliveries, d.Cause)
		}
	}
	v.shut.Store(false)
	close(v.open)
	for _, err := range s.Settle(w.ctx(), settlements(held)) {
		if !errors.Is(err, driver.ErrLeaseLost) {
			t.Errorf("a stale acknowledgement: %v", err)
		}
	}
	w.settle(other, driver.Ack, again...)
	st, err := w.d.Stats(w.ctx(), "jobs")
	w.ok(err)
	if g := st.Groups[0]; g.Acked != 100 || g.Received != 100 || st.Messages != 0 {
		t.Errorf("%+v", st)
	}
	w.ok(paused.Close(w.ctx()))
	w.sound()
}

// Entries that an owner read and did not live to lease come first, in order, and under the name of who gets them.
func TestEntriesReadByOneWhoDied(t *testing.T) {
	w := newWorld(t)
	w.onePartition()
	w.publish(0, 30, "k")
	w.ok(w.c.HSet(w.ctx(), fmt.Sprintf("{%s/jobs/0}:g:default:group", w.prefix), "reading", 1).Err())
	read, err := w.c.XReadGroup(w.ctx(),
		&goredis.XReadGroupArgs{Group: "default", Consumer: "ghost", Streams: []string{w.stream(0), ">"}, Count: 20}).Result()
	w.ok(err)
	if len(read[0].Messages) != 20 {
		t.Fatalf("%d entries read", len(read[0].Messages))
	}
	w.sound() // they count as ready
	s := w.subscribe("host-1", time.Minute)
	for i := range 30 {
		d := w.take(s, 1)[0]
		if want := fmt.Sprintf("m%04d", i); d.ID != want || d.Deliveries != 1 || d.Attempt != 1 {
			t.Fatalf("%s came where %s was due, deliveries %d", d.ID, want, d.Deliveries)
		}
		pending, err := w.c.XPendingExt(w.ctx(),
			&goredis.XPendingExtArgs{Stream: w.stream(0), Group: "default", Start: "-", End: "+", Count: 1}).Result()
		w.ok(err)
		if pending[0].Consumer != "host-1" {
			t.Errorf("%s is pending with %s", d.ID, pending[0].Consumer)
		}
		w.settle(s, driver.Ack, d)
	}
	w.ok(s.Close(w.ctx()))
	if left := w.c.XInfoConsumers(w.ctx(), w.stream(0), "default").Val(); len(left) > 0 {
		t.Errorf("consumers left: %+v", left)
	}
	w.sound()
}
