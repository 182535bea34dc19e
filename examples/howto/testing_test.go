package howto_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/ferrytest"
	"github.com/ferrymq/ferry/worker"
)

// newBilling is the program under test.
func newBilling(b *ferry.Broker, charge func(int) error) *worker.Worker {
	w := worker.New(b, worker.Options{})
	worker.Handle(w, "orders", func(ctx context.Context, m *ferry.Msg[int]) error {
		if err := charge(m.Value); err != nil {
			return err
		}
		return worker.Emit(ctx, "mails", "thank you")
	}, worker.MaxAttempts(3), worker.Retry(ferry.Delays(time.Minute, time.Hour)))
	return w
}

//snippet:begin test
func TestBillingGivesUp(t *testing.T) {
	ferrytest.Run(t, func(t *testing.T, k *ferrytest.Kit) {
		calls := 0
		k.Start(newBilling(k.Broker, func(int) error { calls++; return errors.New("card declined") }))
		if _, err := ferry.Publish(t.Context(), k.Broker, "orders", 7, ferry.Delay(24*time.Hour)); err != nil {
			t.Fatal(err)
		}
		k.Drain() // a day, a minute and an hour: no time at all
		letters := k.ExpectDead("orders", "max_attempts", 1)
		k.ExpectPublished("mails", 0)
		if calls != 3 || letters[0].Error != "card declined" {
			t.Errorf("%d calls, %q", calls, letters[0].Error)
		}
	})
}

//snippet:end

func TestBilling(t *testing.T) {
	ferrytest.Run(t, func(t *testing.T, k *ferrytest.Kit) {
		k.Start(newBilling(k.Broker, func(int) error { return nil }))

		//snippet:begin fail
		k.FailPublish(1, ferry.ErrNotApplied) // the next publish finds no broker
		_, err := ferry.Publish(t.Context(), k.Broker, "orders", 7)
		//snippet:end

		if !errors.Is(err, ferry.ErrNotApplied) {
			t.Fatal(err)
		}
		if _, err := ferry.Publish(t.Context(), k.Broker, "orders", 7); err != nil {
			t.Fatal(err)
		}
		k.Advance(time.Second)
		k.ExpectAcked("orders", 1)
		k.ExpectPublished("mails", 1)
	})
}
