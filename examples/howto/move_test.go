package howto_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
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
		for i := range 3 {
			if _, err := ferry.Publish(t.Context(), old, "orders", i, ferry.Key("ann"), ferry.Header("lang", "zh")); err != nil {
				t.Fatal(err)
			}
		}

		if _, err := ferry.Publish(t.Context(), old, "orders", 3, ferry.Key("ann"), ferry.Delay(time.Hour), ferry.Header("lang", "zh")); err != nil {
			t.Fatal(err)
		}

		//snippet:begin bridge
		// What waits on the old broker is published on the new one, each key in order. A message that is moved twice,
		// because the process died in between, keeps its id and is stored once.
		bridge := worker.New(old, worker.Options{MaxAttempts: ferry.Unlimited})
		worker.HandleRaw(bridge, "orders", func(ctx context.Context, d *ferry.Delivery) error {
			m := d.Message.Clone()
			m.OwnID, m.Delay, m.At = true, 0, time.Time{} // it is due: it has waited for that already
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
		var got []int
		w := worker.New(fresh, worker.Options{})
		worker.Handle(w, "orders", func(_ context.Context, m *ferry.Msg[int]) error {
			if m.Headers["lang"] == "zh" {
				got = append(got, m.Value)
			}
			return nil
		})
		k.Start(w)
		k.Stop()
		if !slices.Equal(got, []int{0, 1, 2, 3}) {
			t.Fatalf("%v", got)
		}
	})
}
