package ferry_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
)

// slowDriver behaves like a server at a distance: a publish takes a while, and ends early when its context does.
type slowDriver struct {
	driver.Driver
	trip time.Duration

	mu      sync.Mutex
	batches [][]string // ids, in order of arrival
}

func newSlowDriver(t testing.TB, trip time.Duration) *slowDriver {
	return &slowDriver{Driver: newMemory(t, memory.Options{}), trip: trip}
}

func (d *slowDriver) Capabilities() driver.Capabilities {
	c := d.Driver.Capabilities()
	c.Local = false
	return c
}

func (d *slowDriver) Publish(ctx context.Context, msgs []*driver.Message,
	o driver.PublishOptions) ([]driver.Receipt, error) {
	var ids []string
	for _, m := range msgs {
		ids = append(ids, m.ID)
	}
	d.mu.Lock()
	d.batches = append(d.batches, ids)
	d.mu.Unlock()
	select {
	case <-time.After(d.trip):
		return d.Driver.Publish(context.WithoutCancel(ctx), msgs, o)
	case <-ctx.Done():
		rs := make([]driver.Receipt, len(msgs))
		for i, m := range msgs {
			rs[i] = driver.Receipt{ID: m.ID, Err: errors.Join(driver.ErrUnknown, context.Cause(ctx))}
		}
		return rs, driver.ErrUnknown
	}
}

func TestIdlePublishIsSentAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, newSlowDriver(t, time.Millisecond), ferry.Options{})
		start := time.Now()
		for i := range 10 {
			if _, err := ferry.Publish(t.Context(), b, "t", i); err != nil {
				t.Fatal(err)
			}
		}
		if got := time.Since(start); got != 10*time.Millisecond {
			t.Errorf("10 publishes one after the other took %v, want exactly 10 trips of 1ms", got)
		}
	})
}

func TestConcurrentPublishesTravelTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newSlowDriver(t, time.Millisecond)
		b := newBroker(t, d, ferry.Options{})
		start := time.Now()
		var callers sync.WaitGroup
		for i := range 100 {
			callers.Go(func() {
				r, err := ferry.Publish(t.Context(), b, "t", i, ferry.ID(fmt.Sprint(i)))
				if err != nil || r.ID != fmt.Sprint(i) {
					t.Errorf("publish %d: %+v, %v", i, r, err)
				}
			})
		}
		callers.Wait()
		if got := time.Since(start); got != 2*time.Millisecond {
			t.Errorf("100 callers took %v, want 2 trips: two alone, then the rest together", got)
		}
		if len(d.batches) != 3 || len(d.batches[2]) != 98 {
			t.Errorf("batches %v, want two of one and one of 98", d.batches)
		}
		if n := len(receive(t, b, "t", 1000)); n != 100 {
			t.Errorf("%d messages arrived, want 100", n)
		}
	})
}

func TestPublishesOfDifferentLevelsDoNotMix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newSlowDriver(t, time.Millisecond)
		b := newBroker(t, d, ferry.Options{})
		var callers sync.WaitGroup
		for i := range 12 {
			var opts []ferry.PublishOption
			if i >= 7 {
				opts = append(opts, ferry.Level(ferry.InMemory))
			}
			callers.Go(func() {
				if _, err := ferry.Publish(t.Context(), b, "t", i, opts...); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait() // in this order
		}
		callers.Wait()
		var sizes []int
		for _, batch := range d.batches {
			sizes = append(sizes, len(batch))
		}
		if got := fmt.Sprint(sizes); got != "[1 1 5 5]" {
			t.Errorf("batch sizes %s, want [1 1 5 5]", got)
		}
	})
}

func TestACallerThatGivesUpHurtsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newSlowDriver(t, time.Second)
		b := newBroker(t, d, ferry.Options{})
		publish := func(id string, limit time.Duration) <-chan error {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			result := make(chan error, 1)
			go func() {
				defer cancel()
				_, err := ferry.Publish(ctx, b, "t", 1, ferry.ID(id))
				result <- err
			}()
			synctest.Wait()
			return result
		}
		first, second := publish("first", time.Hour), publish("second", time.Hour)
		queued := publish("queued", 500*time.Millisecond)
		sent := publish("sent", 1500*time.Millisecond)
		stays := publish("stays", time.Hour)

		if err := <-queued; !errors.Is(err, ferry.ErrNotApplied) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("given up while queued: %v, want ErrNotApplied", err)
		}
		if err := <-sent; !errors.Is(err, ferry.ErrUnknown) {
			t.Errorf("given up while being sent: %v, want ErrUnknown", err)
		}
		for name, r := range map[string]<-chan error{"first": first, "second": second, "stays": stays} {
			if err := <-r; err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n := len(receive(t, b, "t", 10)); n != 4 {
			t.Errorf("%d messages arrived, want 4: all but the one that was never sent", n)
		}
	})
}

func TestABatchEverybodyGaveUpIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, newSlowDriver(t, time.Hour), ferry.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		var callers sync.WaitGroup
		for i := range 20 {
			callers.Go(func() {
				if _, err := ferry.Publish(ctx, b, "t", i); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("error %v, want the deadline", err)
				}
			})
		}
		callers.Wait()
		if got := time.Since(start); got != time.Second {
			t.Errorf("callers returned after %v, want their deadline", got)
		}
	}) // the bubble fails if a sender were left waiting for an hour after Close
}
