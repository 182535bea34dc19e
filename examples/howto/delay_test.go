package howto_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/ferrytest"
	"github.com/ferrymq/ferry/worker"
)

func TestDelay(t *testing.T) {
	ferrytest.Run(t, func(t *testing.T, k *ferrytest.Kit) {
		ctx, b := t.Context(), k.Broker
		deadline := time.Now().AddDate(0, 0, 7)

		//snippet:begin delay
		// In 30 minutes: cancel the order if it is not paid by then.
		_, err := ferry.Publish(ctx, b, "orders.cancel", 4711, ferry.Delay(30*time.Minute))
		if err != nil {
			return // nothing is scheduled: tell the caller
		}

		// At a time: it is handled when the broker's clock gets there, never before.
		_, err = ferry.Publish(ctx, b, "reminders", "your trial ends today", ferry.At(deadline))
		//snippet:end

		if err != nil {
			t.Fatal(err)
		}
		w := worker.New(b, worker.Options{})
		for _, topic := range []string{"orders.cancel", "reminders"} {
			worker.HandleRaw(w, topic, func(context.Context, *ferry.Delivery) error { return nil })
		}
		k.Start(w)
		k.Advance(30*time.Minute - time.Second)
		k.ExpectAcked("orders.cancel", 0)
		k.Advance(2 * time.Second)
		k.ExpectAcked("orders.cancel", 1)
		k.ExpectAcked("reminders", 0)
		k.Advance(7 * 24 * time.Hour)
		k.ExpectAcked("reminders", 1)
	})
}

func TestRetryAfter(t *testing.T) {
	ferrytest.Run(t, func(t *testing.T, k *ferrytest.Kit) {
		var paid atomic.Bool

		//snippet:begin again
		handle := func(_ context.Context, m *ferry.Msg[int]) error {
			if !paid.Load() {
				return worker.Park(time.Minute) // look again in a minute; it costs no attempt
			}
			return nil
		}
		//snippet:end

		w := worker.New(k.Broker, worker.Options{})
		worker.Handle(w, "orders", handle)
		k.Start(w)
		if _, err := ferry.Publish(t.Context(), k.Broker, "orders", 1); err != nil {
			t.Fatal(err)
		}
		k.Advance(time.Hour)
		k.ExpectAcked("orders", 0)
		paid.Store(true)
		k.Advance(time.Minute)
		k.ExpectAcked("orders", 1)
		k.ExpectRetried("orders", 0)
	})
}
