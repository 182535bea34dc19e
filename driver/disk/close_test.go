package disk

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/ferrymq/ferry/driver"
)

// TestCloseWaitsForReaders closes a store while a call is in the middle of a read: Pebble stays open until it is done.
func TestCloseWaitsForReaders(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var slow atomic.Bool
		reading, release := make(chan struct{}, 1), make(chan struct{})
		fs := newFaultFS(vfs.NewMem(), func(op errorfs.Op) error {
			if op.Kind == errorfs.OpFileReadAt && slow.CompareAndSwap(true, false) {
				reading <- struct{}{}
				<-release
			}
			return nil
		})
		d := open(t, Options{Dir: "/store", CacheBytes: 1, fs: fs})
		some(t, d, 10)
		if err := d.store.db.Flush(); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Stats(ctx, "jobs"); err != nil { // the end of any call lets go of what can be read
			t.Fatal(err)
		}
		slow.Store(true)
		got, closed := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := d.Get(ctx, driver.Target{Topic: "jobs", ID: "m3"})
			got <- err
		}()
		<-reading
		go func() { closed <- d.Close(ctx) }()
		synctest.Wait()
		select {
		case err := <-closed:
			t.Fatalf("Close returned while a call was reading: %v", err)
		default:
		}
		if _, err := d.Get(ctx, driver.Target{Topic: "jobs", ID: "m4"}); !errors.Is(err, driver.ErrClosed) {
			t.Errorf("Get during Close: %v, want ErrClosed", err)
		}
		close(release)
		if err := errors.Join(<-got, <-closed); err != nil {
			t.Error(err)
		}
	})
}

// some publishes messages m0, m1 and so on.
func some(t *testing.T, d *Driver, n int) {
	t.Helper()
	var ms []*driver.Message
	for i := range n {
		ms = append(ms, &driver.Message{ID: fmt.Sprint("m", i), Topic: "jobs", Body: make([]byte, 100)})
	}
	if _, err := d.Publish(ctx, ms, driver.PublishOptions{}); err != nil {
		t.Fatalf("Publish: %v", err)
	}
}

// TestCloseWhileInUse closes a store below callers of everything. Each gets an answer or ErrClosed, and none waits for
// ever.
func TestCloseWhileInUse(t *testing.T) {
	t.Parallel()
	for _, sync := range []Sync{Always, Interval(time.Second)} {
		t.Run(sync.String(), func(t *testing.T) {
			t.Parallel()
			for range 3 {
				closeInUse(t, sync)
			}
		})
	}
}

func closeInUse(t *testing.T, when Sync) {
	d := open(t, Options{Dir: "/store", CacheBytes: 1, Window: 8, Sync: when, fs: vfs.NewMem(), snapshotFrom: 1})
	some(t, d, 200)
	s, err := d.Subscribe(ctx, driver.SubscribeOptions{Topic: "jobs", Group: driver.DefaultGroup, Instance: "closing"})
	if err != nil {
		t.Fatal(err)
	}
	var n atomic.Int64
	calls := []func() error{
		func() error {
			id := fmt.Sprint("n", n.Add(1))
			_, err := d.Publish(ctx, []*driver.Message{{ID: id, Topic: "jobs", Body: []byte(id)}}, driver.PublishOptions{})
			return err
		},
		func() error {
			_, err := d.Get(ctx, driver.Target{Topic: "jobs", ID: fmt.Sprint("m", n.Add(1)%200)})
			return err
		},
		func() error {
			_, err := d.Browse(ctx, driver.Query{Topic: "jobs", Group: driver.DefaultGroup, State: driver.StateReady})
			return err
		},
		func() error { _, err := d.Audit(ctx, "jobs", false); return err },
		func() error { _, err := d.Usage(ctx); return err },
		func() error { _, err := d.Diagnose(ctx); return err },
		func() error { return d.EnsureGroup(ctx, "jobs", driver.DefaultGroup, driver.GroupOptions{}) },
		func() error {
			ds, err := s.Receive(ctx, 3)
			if err != nil {
				return err
			}
			return s.Settle(ctx, []driver.Settlement{{Delivery: ds[0]}})[0]
		},
		func() error {
			short, cancel := context.WithTimeout(ctx, 50*time.Microsecond)
			defer cancel()
			if _, err := s.Receive(short, 1); err != nil && short.Err() == nil {
				return err
			}
			return nil
		},
	}
	var wg sync.WaitGroup
	busy := make(chan struct{}, 1)
	for _, call := range calls {
		wg.Go(func() { untilClosed(t, call, busy) })
	}
	for range 50 {
		<-busy
	}
	if err := d.Close(ctx); err != nil {
		t.Errorf("Close: %v", err)
	}
	wg.Wait()
}

// untilClosed repeats a call until it says that the store is closed.
func untilClosed(t *testing.T, call func() error, busy chan struct{}) {
	for {
		err := call()
		switch {
		case errors.Is(err, driver.ErrClosed):
			return
		case err != nil && !errors.Is(err, driver.ErrNotFound):
			t.Errorf("a call beside Close: %v", err)
			return
		}
		select {
		case busy <- struct{}{}:
		default:
		}
	}
}
