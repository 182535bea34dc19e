package ferry_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
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

// Callers that publish again as soon as they are answered travel together again, half of them with each sender. Without
// that the first of them would travel alone every time, and twice as many calls would be made.
func TestAnsweredPublishersTravelTogetherAgain(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // with several a busy machine decides which of them runs when
	for _, callers := range []int{10, 50} {
		synctest.Test(t, func(t *testing.T) {
			const each = 100
			d := newSlowDriver(t, time.Millisecond)
			b := newBroker(t, d, ferry.Options{})
			var group sync.WaitGroup
			for range callers {
				group.Go(func() {
					for range each {
						if _, err := ferry.Publish(t.Context(), b, "t", 1); err != nil {
							t.Error(err)
						}
					}
				})
			}
			group.Wait()
			if got, least := len(d.batches), each*2; got > least*5/4 {
				t.Errorf("%d callers published %d times each in %d calls, want hardly more than %d", callers, each, got, least)
			}
		})
	}
}

// Requests and bodies are used again, and each message keeps its own.
func TestGatheredMessagesKeepTheirBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, newSlowDriver(t, time.Millisecond), ferry.Options{})
		var group sync.WaitGroup
		for caller := range 20 {
			group.Go(func() {
				body := make([]byte, 0, 32)
				for i := range 20 {
					id := fmt.Sprintf("%d of %d", i, caller)
					body = append(body[:0], id...)
					r, err := b.Publish(t.Context(), &ferry.Message{Topic: "t", Body: body}, ferry.ID(id))
					if err != nil || r.ID != id {
						t.Errorf("%s: %+v, %v", id, r, err)
					}
				}
			})
		}
		group.Wait()
		ds := receive(t, b, "t", 1000)
		if len(ds) != 400 {
			t.Errorf("%d messages arrived, want 400", len(ds))
		}
		for _, d := range ds {
			if string(d.Body) != d.ID {
				t.Errorf("message %q has the body %q", d.ID, d.Body)
			}
		}
	})
}

// syncedDriver is a slowDriver whose default level waits for a sync that callers share.
type syncedDriver struct{ *slowDriver }

func (syncedDriver) SharesSync() {}

func (d syncedDriver) Capabilities() driver.Capabilities {
	c := d.slowDriver.Capabilities()
	c.Durability, c.Levels = driver.Synced, []driver.Durability{driver.Written, driver.Synced}
	return c
}

func (d syncedDriver) Publish(ctx context.Context, msgs []*driver.Message,
	o driver.PublishOptions) ([]driver.Receipt, error) {
	if o.Level == driver.Written {
		return d.Driver.Publish(ctx, msgs, driver.PublishOptions{})
	}
	return d.slowDriver.Publish(ctx, msgs, driver.PublishOptions{})
}

// All who publish in a loop wait for the same sync, from the third one on: the first is for who came first, alone.
func TestPublishersShareASync(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, callers := range []int{1, 2, 8, 50} {
		synctest.Test(t, func(t *testing.T) {
			const each = 100
			d := newSlowDriver(t, time.Millisecond)
			b := newBroker(t, syncedDriver{d}, ferry.Options{})
			var group sync.WaitGroup
			for range callers {
				group.Go(func() {
					for range each {
						if _, err := ferry.Publish(t.Context(), b, "t", 1); err != nil {
							t.Error(err)
						}
					}
				})
			}
			group.Wait()
			if got := len(d.batches); got > each*6/5 {
				t.Errorf("%d callers published %d times each with %d syncs, want hardly more than %d", callers, each, got, each)
			}
		})
	}
}

// What need not be synced does not wait behind what is.
func TestAnotherLevelDoesNotWaitForASync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, syncedDriver{newSlowDriver(t, time.Hour)}, ferry.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		var callers sync.WaitGroup
		for range 3 {
			callers.Go(func() { _, _ = ferry.Publish(ctx, b, "t", 1) })
		}
		synctest.Wait()
		start := time.Now()
		if _, err := ferry.Publish(t.Context(), b, "t", 1, ferry.Level(ferry.Written)); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("a publish that waits for no sync took %v behind three that do", took)
		}
		cancel()
		callers.Wait()
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
