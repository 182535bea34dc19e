package remote_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/remote"
)

// way leads to whichever node serves now, and can lose answers.
type way struct {
	node atomic.Pointer[node]
	deaf atomic.Bool // what is sent arrives, and no answer comes back
}

func (w *way) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := w.node.Load().pipes.Dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &deafConn{Conn: c, way: w}, nil
}

// deafConn loses the first answer that comes while its way is deaf, and breaks.
type deafConn struct {
	net.Conn
	way *way
}

func (c *deafConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err == nil && c.way.deaf.Load() {
		return 0, errors.Join(errors.New("connection reset"), c.Close())
	}
	return n, err
}

// world is a broker in memory with a gateway, which can be replaced, and a remote driver.
type world struct {
	driver.Driver
	way     *way
	backend driver.Driver
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{way: &way{}, backend: newMemory(t)}
	w.way.node.Store(serve(t, w.backend))
	d, err := remote.New(t.Context(), remote.Options{URL: "ferry://test", Dial: w.way.dial})
	if err != nil {
		t.Fatal(err)
	}
	w.Driver = d
	t.Cleanup(func() {
		ctx := context.Background()
		if err := errors.Join(d.Close(ctx), w.way.node.Load().stop(ctx), w.backend.Close(ctx)); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) put(t *testing.T, ids ...string) {
	t.Helper()
	var ms []*driver.Message
	for _, id := range ids {
		ms = append(ms, &driver.Message{ID: id, OwnID: true, Topic: "jobs"})
	}
	if _, err := w.Publish(t.Context(), ms, driver.PublishOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (w *world) subscribe(t *testing.T) driver.Subscription {
	t.Helper()
	s, err := w.Subscribe(t.Context(), driver.SubscribeOptions{Topic: "jobs", Instance: "test", Lease: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func receive(t *testing.T, s driver.Subscription, id string) *driver.Delivery {
	t.Helper()
	ds, err := s.Receive(t.Context(), 1)
	if err != nil {
		t.Fatalf("Receive of %s: %v", id, err)
	}
	if ds[0].ID != id {
		t.Fatalf("got %s, want %s", ds[0].ID, id)
	}
	return ds[0]
}

// A publish whose answer is lost has an unknown outcome; the same one again is stored once.
func TestLostAnswerOfAPublish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		m := &driver.Message{ID: "a", OwnID: true, Topic: "jobs"}
		w.way.deaf.Store(true)
		rs, err := w.Publish(t.Context(), []*driver.Message{m}, driver.PublishOptions{})
		if !errors.Is(err, driver.ErrUnknown) || !errors.Is(rs[0].Err, driver.ErrUnknown) ||
			errors.Is(err, driver.ErrNotApplied) {
			t.Fatalf("got %v, want ErrUnknown", err)
		}
		w.way.deaf.Store(false)
		rs, err = w.Publish(t.Context(), []*driver.Message{m}, driver.PublishOptions{})
		if err != nil || !rs[0].Duplicate {
			t.Fatalf("again: got %+v, %v, want a duplicate", rs, err)
		}
	})
}

// A claim whose answer is lost is brought by the next Receive, uncounted, and its lease was not lost.
func TestLostAnswerOfAReceive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.subscribe(t)
		w.put(t, "a", "b")
		w.way.deaf.Store(true)
		if _, err := s.Receive(t.Context(), 1); !errors.Is(err, driver.ErrNotApplied) {
			t.Fatalf("got %v, want ErrNotApplied", err)
		}
		w.way.deaf.Store(false)
		d := receive(t, s, "a")
		if d.Deliveries != 1 || d.Cause != driver.CauseFirst {
			t.Errorf("delivered with %d deliveries, cause %s", d.Deliveries, d.Cause)
		}
		receive(t, s, "b")
		if errs := s.Settle(t.Context(), []driver.Settlement{{Delivery: d}}); errs[0] != nil {
			t.Errorf("Settle: %v", errs[0])
		}
	})
}

// A settlement whose answer is lost has an unknown outcome.
func TestLostAnswerOfASettlement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.subscribe(t)
		w.put(t, "a")
		d := receive(t, s, "a")
		w.way.deaf.Store(true)
		if errs := s.Settle(t.Context(), []driver.Settlement{{Delivery: d}}); !errors.Is(errs[0], driver.ErrUnknown) {
			t.Fatalf("got %v, want ErrUnknown", errs[0])
		}
		w.way.deaf.Store(false)
		if errs := s.Settle(t.Context(), []driver.Settlement{{Delivery: d}}); !errors.Is(errs[0], driver.ErrLeaseLost) {
			t.Fatalf("again: got %v, want ErrLeaseLost", errs[0])
		}
	})
}

// While no server runs nothing is applied, and that is known. When another runs the same driver and subscription go on;
// what was held is delivered again when its lease is over.
func TestServerIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.subscribe(t)
		w.put(t, "a", "b")
		a := receive(t, s, "a")
		if err := w.way.node.Load().kill(); err != nil {
			t.Fatal(err)
		}
		_, err := w.Publish(t.Context(), []*driver.Message{{ID: "c", Topic: "jobs"}}, driver.PublishOptions{})
		if !errors.Is(err, driver.ErrNotApplied) {
			t.Errorf("Publish without a server: got %v, want ErrNotApplied", err)
		}
		if _, err := s.Receive(t.Context(), 1); !errors.Is(err, driver.ErrNotApplied) {
			t.Errorf("Receive without a server: got %v, want ErrNotApplied", err)
		}
		old := w.way.node.Load()
		w.way.node.Store(serve(t, w.backend))
		receive(t, s, "b")
		if errs := s.Settle(t.Context(), []driver.Settlement{{Delivery: a}}); !errors.Is(errs[0], driver.ErrLeaseLost) {
			t.Errorf("Settle of what another server held: got %v, want ErrLeaseLost", errs[0])
		}
		if again := receive(t, s, "a"); again.Deliveries != 2 || again.Cause != driver.CauseLeaseExpired {
			t.Errorf("delivered again with %d deliveries, cause %s", again.Deliveries, again.Cause)
		}
		if err := old.gateway.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A server that stops in order gives back what its clients hold at once, and their drivers are not closed by it.
func TestServerStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.subscribe(t)
		w.put(t, "a")
		receive(t, s, "a")
		waiting := make(chan error, 1)
		go func() {
			_, err := s.Receive(t.Context(), 1)
			waiting <- err
		}()
		synctest.Wait()
		start := time.Now()
		if err := w.way.node.Load().stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-waiting; !errors.Is(err, driver.ErrNotApplied) || errors.Is(err, driver.ErrClosed) {
			t.Errorf("Receive at a server that stops: got %v, want ErrNotApplied", err)
		}
		w.way.node.Store(serve(t, w.backend))
		if again := receive(t, s, "a"); again.Deliveries != 1 || time.Since(start) > time.Second {
			t.Errorf("delivered again after %v with %d deliveries", time.Since(start), again.Deliveries)
		}
	})
}

// The session of a client that is never heard of again ends, and leaves the group.
func TestClientVanishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.subscribe(t)
		w.put(t, "a", "b")
		receive(t, s, "a")
		time.Sleep(time.Minute) // far beyond the lease
		stats, err := w.backend.Stats(t.Context(), "jobs")
		if err != nil {
			t.Fatal(err)
		}
		if g := stats.Groups[0]; g.Consumers != 0 || g.Inflight != 0 || g.Ready != 2 {
			t.Errorf("a minute later: %+v", g)
		}
		receive(t, s, "a") // it was only silent
	})
}
