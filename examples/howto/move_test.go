package howto_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/ferrytest"
	"github.com/ferrymq/ferry/worker"
)

func TestMoveBetweenBrokers(t *testing.T) {
	ferrytest.Run(t, func(t *testing.T, k *ferrytest.Kit) {
		old := k.Broker
		fresh, err := memory.Open(t.Context(), memory.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer fresh.Close(context.Background())
		begin := time.Now()
		for i := range 3 {
			if _, err := ferry.Publish(t.Context(), old, "orders", i, ferry.Key("ann"), ferry.Header("lang", "zh")); err != nil {
				t.Fatal(err)
			}
		}

		if _, err := ferry.Publish(t.Context(), old, "orders", 3, ferry.Key("ann"), ferry.Delay(time.Hour),
			ferry.Header("lang", "zh")); err != nil {
			t.Fatal(err)
		}
		late, err := ferry.Publish(t.Context(), old, "orders", 4, ferry.Delay(10*time.Hour), ferry.Header("lang", "zh"))
		if err != nil {
			t.Fatal(err)
		}
		lateToo, err := ferry.Publish(t.Context(), old, "orders", 5, ferry.At(begin.Add(11*time.Hour)),
			ferry.Header("lang", "zh"))
		if err != nil {
			t.Fatal(err)
		}

		//snippet:begin bridge
		// What waits on the old broker is published on the new one, each key in order, with what is left of its delay. A
		// message that is moved twice, because the process died in between, keeps its id.
		bridge := worker.New(old, worker.Options{MaxAttempts: ferry.Unlimited})
		worker.HandleRaw(bridge, "orders", func(ctx context.Context, d *ferry.Delivery) error {
			m := d.Message.Clone()
			if m.Delay > 0 && m.Delay != driver.Hold {
				m.At = m.PublishedAt.Add(m.Delay) // a time that is past means now
			}
			m.OwnID, m.Delay = true, 0
			_, err := fresh.Publish(ctx, m)
			return err
		})
		//snippet:end

		k.Start(bridge)
		k.ExpectAcked("orders", 3)
		k.Advance(time.Hour)
		k.ExpectAcked("orders", 4)
		if s, err := fresh.Driver().Stats(t.Context(), "orders"); err != nil || s.Delayed != 0 {
			t.Fatalf("what was due waits again: %+v, %v", s, err)
		}
		for _, r := range []ferry.Receipt{late, lateToo} { // ferry msg move: it is bridged before its time
			if err := old.Driver().Move(t.Context(),
				[]driver.Move{{Target: driver.Target{Topic: "orders", ID: r.ID}}})[0]; err != nil {
				t.Fatal(err)
			}
		}
		k.Drain()
		k.ExpectAcked("orders", 6)
		var mu sync.Mutex
		var got []int
		w := worker.New(fresh, worker.Options{})
		worker.Handle(w, "orders", func(_ context.Context, m *ferry.Msg[int]) error {
			mu.Lock()
			defer mu.Unlock()
			if m.Headers["lang"] == "zh" {
				got = append(got, m.Value)
			}
			return nil
		})
		k.Start(w)
		for i, want := range [][]int{{0, 1, 2, 3}, {0, 1, 2, 3, 4}, {0, 1, 2, 3, 4, 5}} {
			after := time.Duration(9+i)*time.Hour + time.Minute
			k.Advance(time.Until(begin.Add(after)))
			mu.Lock()
			if !slices.Equal(got, want) {
				t.Errorf("after %v: %v, want %v", after, got, want)
			}
			mu.Unlock()
		}
		k.Stop()
	})
}
