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

// stallingFS is a file system whose syncs of the log wait while it is stalled.
type stallingFS struct {
	vfs.FS
	stalled atomic.Pointer[chan struct{}]
}

func newStallingFS() *stallingFS {
	s := &stallingFS{}
	s.FS = newFaultFS(vfs.NewMem(), func(op errorfs.Op) error {
		if release := s.stalled.Load(); op.Kind == errorfs.OpFileSyncData && release != nil {
			<-*release
		}
		return nil
	})
	return s
}

// stall makes syncs wait, and returns what lets them go on.
func (s *stallingFS) stall() (release func()) {
	c := make(chan struct{})
	s.stalled.Store(&c)
	return func() {
		s.stalled.Store(nil)
		close(c)
	}
}

// TestStalledSync: while the disk does not answer, publishes wait as long as their contexts allow, what is durable is
// fetched and settled, and what is not is not delivered. Afterwards nothing is lost, and no lease was.
func TestStalledSync(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fs := newStallingFS()
		d := open(t, Options{Dir: "/store", fs: fs})
		publishN(t, d, 20)
		s, err := d.Subscribe(ctx, driver.SubscribeOptions{Topic: "jobs", Instance: "test"})
		if err != nil {
			t.Fatal(err)
		}
		release := fs.stall()
		unknownWithin(t, d, "hasty", time.Second)
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				if err := publishOne(ctx, d, fmt.Sprint("patient", i)); err != nil {
					t.Errorf("a publish that waits: %v", err)
				}
			})
		}
		synctest.Wait()
		consumeDurable(t, s)
		waitInVain(t, s)
		got := make(chan []*driver.Delivery)
		go func() { got <- receiveN(t, s, 6) }()
		time.Sleep(time.Minute) // six leases
		start := time.Now()
		release()
		wg.Wait()
		for _, x := range <-got {
			if x.Deliveries != 1 || x.Attempt != 1 || x.Cause != driver.CauseFirst {
				t.Errorf("%q: the stall was counted: delivery %d, attempt %d, cause %s", x.ID, x.Deliveries, x.Attempt, x.Cause)
			}
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("it took %v to recover", took)
		}
		if r, err := d.Publish(ctx, []*driver.Message{{ID: "hasty", OwnID: true, Topic: "jobs"}},
			driver.PublishOptions{}); err != nil || !r[0].Duplicate {
			t.Errorf("a repeated publish: %+v, %v", r, err)
		}
		if err := d.Close(ctx); err != nil {
			t.Fatal(err)
		}
	})
}

// TestLeavingUnseen: a consumer that leaves while it waits for the disk has seen nothing, and whoever comes next gets
// the messages as if they were new.
func TestLeavingUnseen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fs := newStallingFS()
		d := open(t, Options{Dir: "/store", fs: fs})
		o := driver.SubscribeOptions{Topic: "jobs", Instance: "test"}
		first, err := d.Subscribe(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		second, err := d.Subscribe(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		release := fs.stall()
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() {
				if err := publishOne(ctx, d, fmt.Sprint(i)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Go(func() {
			if ds, err := first.Receive(ctx, 10); !errors.Is(err, driver.ErrClosed) {
				t.Errorf("who left received %d messages, %v", len(ds), err)
			}
		})
		synctest.Wait()
		if err := first.Close(ctx); err != nil {
			t.Error(err)
		}
		release()
		for _, x := range receiveN(t, second, 3) {
			if x.Deliveries != 1 || x.Attempt != 1 || x.Cause != driver.CauseFirst {
				t.Errorf("%q was seen by nobody: delivery %d, attempt %d, cause %s", x.ID, x.Deliveries, x.Attempt, x.Cause)
			}
		}
		wg.Wait()
		if err := d.Close(ctx); err != nil {
			t.Fatal(err)
		}
	})
}

func publishOne(ctx context.Context, d *Driver, id string) error {
	_, err := d.Publish(ctx, []*driver.Message{{ID: id, OwnID: true, Topic: "jobs"}}, driver.PublishOptions{})
	return err
}

// unknownWithin publishes with a deadline that the disk does not meet.
func unknownWithin(t *testing.T, d *Driver, id string, patience time.Duration) {
	t.Helper()
	start := time.Now()
	short, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	refused(t, "a publish with a deadline", publishOne(short, d, id), driver.ErrUnknown,
		"the context ended before the disk had confirmed")
	if took := time.Since(start); took != patience {
		t.Errorf("it took %v instead of %v", took, patience)
	}
}

// consumeDurable takes the 20 messages that were synced, and demands that nothing waits.
func consumeDurable(t *testing.T, s driver.Subscription) {
	t.Helper()
	start := time.Now()
	ds := receiveN(t, s, 20)
	ss := make([]driver.Settlement, len(ds))
	for i, x := range ds {
		ss[i] = driver.Settlement{Delivery: x, Outcome: driver.Outcome(i % 2 * int(driver.Drop))}
	}
	if err := errors.Join(s.Extend(ctx, ds)...); err != nil {
		t.Error(err)
	}
	if err := errors.Join(s.Settle(ctx, ss)...); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > 0 {
		t.Errorf("consuming what is durable took %v", took)
	}
}

// waitInVain receives with a deadline while there is only what is not durable.
func waitInVain(t *testing.T, s driver.Subscription) {
	t.Helper()
	short, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if ds, err := s.Receive(short, 10); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%d deliveries of messages that a power loss would take, %v", len(ds), err)
	}
}

// receiveN receives n messages.
func receiveN(t *testing.T, s driver.Subscription, n int) (all []*driver.Delivery) {
	t.Helper()
	for len(all) < n {
		ds, err := s.Receive(ctx, n-len(all)+5)
		if err != nil {
			t.Errorf("Receive: %v", err)
			return all
		}
		all = append(all, ds...)
	}
	return all
}

// TestIntervalDoesNotWait: who chose an interval gets messages that a power loss may take.
func TestIntervalDoesNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fs := newStallingFS()
		d := open(t, Options{Dir: "/store", fs: fs, Sync: Interval(time.Second)})
		s, err := d.Subscribe(ctx, driver.SubscribeOptions{Topic: "jobs", Instance: "test"})
		if err != nil {
			t.Fatal(err)
		}
		release := fs.stall()
		start := time.Now()
		publishN(t, d, 3)
		receiveN(t, s, 3)
		if took := time.Since(start); took > 0 {
			t.Errorf("it took %v", took)
		}
		release()
		if err := d.Close(ctx); err != nil {
			t.Fatal(err)
		}
	})
}
