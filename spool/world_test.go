package spool_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/spool"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // what fails here is meant to
	goleak.VerifyTestMain(m)
}

const topic = "orders"

// outage is how a broker fails.
type outage func(m *driver.Message) error

func refused(*driver.Message) error {
	return driver.NewError(driver.ErrNotApplied, "connection refused", "", nil)
}

// faulty is a broker in memory that can be away.
type faulty struct {
	*memory.Driver
	mu    sync.Mutex
	fails outage // nil: it does not; its answer nil: not for this message
	late  bool   // it stores what it fails for: the answer is lost
	hangs bool
	tries int
}

// Capabilities are those of a broker that can keep its callers waiting.
func (f *faulty) Capabilities() driver.Capabilities {
	c := f.Driver.Capabilities()
	c.Local = false
	return c
}

func (f *faulty) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *faulty) Publish(ctx context.Context, msgs []*driver.Message,
	o driver.PublishOptions) ([]driver.Receipt, error) {
	f.mu.Lock()
	f.tries++
	fails, late, hangs := f.fails, f.late, f.hangs
	f.mu.Unlock()
	if hangs {
		<-ctx.Done()
		rs := make([]driver.Receipt, len(msgs))
		for i := range rs {
			rs[i].Err = driver.NewError(driver.ErrUnknown, "no answer", "", ctx.Err())
		}
		return rs, rs[0].Err
	}
	var all []driver.Receipt
	var failure error
	for _, m := range msgs {
		var err error
		if fails != nil {
			err = fails(m)
		}
		var r driver.Receipt
		if err == nil || late {
			rs, e := f.Driver.Publish(ctx, []*driver.Message{m}, o)
			if r = rs[0]; err == nil {
				err = e
			}
		}
		r.Err = err
		if err != nil {
			failure = err
		}
		all = append(all, r)
	}
	return all, failure
}

// kept is a local store that outlives its spool.
type kept struct{ driver.Driver }

func (kept) Close(context.Context) error { return nil }

// world is a spool between a faulty broker and a store, in virtual time.
type world struct {
	*testing.T
	broker *faulty
	local  driver.Driver
	*spool.Driver
	n int
}

func newMemory(t testing.TB, maxBody int) *memory.Driver {
	t.Helper()
	d, err := memory.New(context.Background(), memory.Options{MaxBody: maxBody})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

const largeBody = 4<<20 + 128<<10

func newWorld(t *testing.T, o spool.Options) *world {
	t.Helper()
	w := &world{T: t, broker: &faulty{Driver: newMemory(t, 0)}, local: newMemory(t, largeBody)}
	t.Cleanup(func() {
		_ = w.Driver.Close(context.Background())
		_ = w.broker.Driver.Close(context.Background())
		_ = w.local.Close(context.Background())
	})
	w.open(o)
	return w
}

// open begins a life of the spool. The broker and the store are those of the lives before.
func (w *world) open(o spool.Options) {
	w.Helper()
	d, err := spool.New(context.Background(), struct{ driver.Driver }{brokerOf{w.broker}}, kept{w.local}, o)
	if err != nil {
		w.Fatal(err)
	}
	w.Driver = d
}

// brokerOf keeps the broker open when a spool ends.
type brokerOf struct{ *faulty }

func (brokerOf) Close(context.Context) error { return nil }

func (w *world) away() { w.broker.set(func() { w.broker.fails = refused }) }
func (w *world) back() {
	w.broker.set(func() { w.broker.fails, w.broker.late, w.broker.hangs = nil, false, false })
}

func (w *world) msg(key, body string) *driver.Message {
	w.n++
	return &driver.Message{ID: fmt.Sprintf("m%d", w.n), Topic: topic, Key: key, Body: []byte(body)}
}

// put publishes one message and returns its receipt.
func (w *world) put(m *driver.Message) driver.Receipt {
	w.Helper()
	rs, _ := w.Publish(context.Background(), []*driver.Message{m}, driver.PublishOptions{})
	return rs[0]
}

// accept publishes one message for which there must be no error, and says whether it was spooled.
func (w *world) accept(m *driver.Message) (spooled bool) {
	w.Helper()
	r := w.put(m)
	if r.Err != nil {
		w.Fatal(r.Err)
	}
	return r.Spooled
}

// stored returns the bodies that the broker has of a key, in order.
func (w *world) stored(key string) []string {
	w.Helper()
	return bodies(w.T, w.broker.Driver, key)
}

// bodies returns the bodies that a driver has of a key, in order.
func bodies(t *testing.T, d driver.Driver, key string) []string {
	t.Helper()
	var out []string
	q := driver.Query{Topic: topic, Group: driver.DefaultGroup, State: driver.StateReady, Limit: 1000}
	for {
		page, err := d.Browse(context.Background(), q)
		if err != nil {
			return nil
		}
		for _, e := range page.Entries {
			if e.Key == key {
				out = append(out, string(e.Body))
			}
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			return out
		}
	}
}

func (w *world) want(key string, want ...string) {
	w.Helper()
	if got := w.stored(key); !slices.Equal(got, want) {
		w.Errorf("of key %q the broker has %v, want %v", key, got, want)
	}
}

// consume handles one message of the broker.
func (w *world) consume() {
	w.Helper()
	ctx := context.Background()
	sub, err := w.broker.Subscribe(ctx, driver.SubscribeOptions{Topic: topic, Instance: "consumer"})
	if err != nil {
		w.Fatal(err)
	}
	ds, err := sub.Receive(ctx, 1)
	if err == nil {
		err = sub.Settle(ctx, []driver.Settlement{{Delivery: ds[0]}})[0]
	}
	if err := errors.Join(err, sub.Close(ctx)); err != nil {
		w.Fatal(err)
	}
}

// drained waits until nothing is in the spool.
func (w *world) drained() {
	w.Helper()
	for range 600 {
		if w.SpoolStats().Messages == 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	w.Fatalf("the spool does not drain: %+v", w.SpoolStats())
}
