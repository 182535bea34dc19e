package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// TestNoTimerAfterClose closes an engine with every kind of deadline pending.
func TestNoTimerAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(testOptions())
		s := subscribe(t, e, driver.SubscribeOptions{})
		publish(t, e, &driver.Message{Topic: "t", ID: "1", TTL: time.Minute},
			&driver.Message{Topic: "t", ID: "2", Delay: time.Second},
			&driver.Message{Topic: "t", ID: "3", DedupID: "d", DedupWindow: time.Minute})
		settle(t, s, driver.Retry, time.Minute, take(t, s, 1)...)
		tp := topicOf(e, "t")
		if tp.armed == never {
			t.Fatal("no timer is armed")
		}
		if err := errors.Join(e.Close(context.Background()), e.Close(context.Background())); err != nil {
			t.Fatal(err)
		}
		if tp.armed != never || tp.timer.Stop() {
			t.Error("a timer is still armed")
		}
		published := tp.stats
		time.Sleep(time.Hour)
		if tp.stats.Fanned != published.Fanned || tp.stats.Expired != published.Expired {
			t.Error("something happened after Close")
		}
		if _, err := s.Receive(context.Background(), 1); !errors.Is(err, driver.ErrClosed) {
			t.Errorf("Receive after Close: %v", err)
		}
	})
}

// TestNoWakeUpIsLost publishes single messages to many waiting consumers, some of which give up at the same time.
func TestNoWakeUpIsLost(t *testing.T) {
	t.Parallel()
	e := open(t)
	const consumers, messages = 8, 4000
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var wg sync.WaitGroup
	got := make(chan string, messages)
	for range consumers {
		s := subscribe(t, e, driver.SubscribeOptions{MaxInflight: 3})
		wg.Go(func() { consume(ctx, s, got) })
	}
	for i := range messages {
		publish(t, e, &driver.Message{Topic: "t", ID: fmt.Sprint(i), Key: []string{"", "a", "b"}[i%3]})
	}
	for i := range messages {
		select {
		case <-got:
		case <-time.After(20 * time.Second):
			t.Fatalf("stuck after %d messages", i)
		}
	}
	cancel()
	wg.Wait()
}

// consume acks all it gets, and cancels a wait now and then.
func consume(ctx context.Context, s *subscription, got chan<- string) {
	for i := 0; ctx.Err() == nil; i++ {
		wait, cancel := ctx, context.CancelFunc(func() {})
		if i%2 == 0 {
			wait, cancel = context.WithTimeout(ctx, 50*time.Microsecond)
		}
		ds, _ := s.Receive(wait, 2)
		cancel()
		for _, d := range ds {
			s.Settle(ctx, []driver.Settlement{{Delivery: d}})
			got <- d.ID
		}
	}
}

// TestDueMassIsSplit makes more due at once than one step may take; all of it arrives.
func TestDueMassIsSplit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t)
		s := subscribe(t, e, driver.SubscribeOptions{MaxInflight: 1 << 20})
		const n = 3*advanceBudget + 7
		at := time.Now().Add(time.Minute)
		for i := range n {
			publish(t, e, &driver.Message{Topic: "t", ID: fmt.Sprint(i), At: at})
		}
		time.Sleep(time.Minute - 1)
		if ds := take(t, s, n); len(ds) > 0 {
			t.Fatalf("%d came early", len(ds))
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if ds := take(t, s, n); len(ds) != n {
			t.Errorf("%d came, want %d", len(ds), n)
		}
	})
}
