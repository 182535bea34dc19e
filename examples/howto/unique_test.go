package howto_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/ferrytest"
)

func TestUnique(t *testing.T) {
	ferrytest.Run(t, func(t *testing.T, k *ferrytest.Kit) {
		ctx, b := t.Context(), k.Broker
		user := 7

		//snippet:begin dedup
		// However often the button is pressed, one report in five minutes.
		publish := func() (ferry.Receipt, error) {
			return ferry.Publish(ctx, b, "reports", user, ferry.Dedup(fmt.Sprint("report of ", user), 5*time.Minute))
		}
		first, err := publish()
		second, err2 := publish() // acknowledged, not stored again
		//snippet:end

		if err != nil || err2 != nil || !second.Duplicate || second.ID != first.ID {
			t.Fatalf("%+v %v, %+v %v", first, err, second, err2)
		}
		k.Advance(5*time.Minute + time.Second)
		if third, err := publish(); err != nil || third.Duplicate {
			t.Fatalf("%+v %v", third, err)
		}
	})
}

func TestOneAtATime(t *testing.T) {
	ferrytest.Run(t, func(t *testing.T, k *ferrytest.Kit) {
		ctx, b := t.Context(), k.Broker
		user := 7

		//snippet:begin unsettled
		// One report at a time for each user, however long it takes; an hour at most if something goes wrong.
		publish := func() (ferry.Receipt, error) {
			return ferry.Publish(ctx, b, "reports", user, ferry.Unique(fmt.Sprint("report of ", user), time.Hour))
		}
		first, err := publish()
		_, err2 := publish()
		var taken *ferry.UniqueError // an ErrConflict
		known := errors.As(err2, &taken) && taken.ID == first.ID
		//snippet:end

		if err != nil || !known {
			t.Fatalf("%+v %v, %v", first, err, err2)
		}
	})
}

func TestOwnID(t *testing.T) {
	ferrytest.Run(t, func(t *testing.T, k *ferrytest.Kit) {
		ctx, b := t.Context(), k.Broker

		//snippet:begin id
		// The id is yours: a publish whose answer was lost is simply sent again.
		pay := func() (err error) {
			for range 3 {
				if _, err = ferry.Publish(ctx, b, "payments", 100, ferry.ID("payment-4711")); err == nil {
					return nil
				}
			}
			return err
		}
		//snippet:end

		for n := range 3 {
			k.FailPublish(n+1, ferry.ErrUnknown)
		}
		if err := pay(); !errors.Is(err, ferry.ErrUnknown) {
			t.Fatalf("three lost answers are no success: %v", err)
		}
		if err := pay(); err != nil {
			t.Fatal(err)
		}
		r, err := ferry.Publish(ctx, b, "payments", 100, ferry.ID("payment-4711"))
		if err != nil || !r.Duplicate {
			t.Fatalf("%+v %v", r, err)
		}
	})
}
