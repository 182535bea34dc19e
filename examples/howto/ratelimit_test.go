package howto_test

import (
	"context"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/ferrytest"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/worker"
)

func TestRateLimit(t *testing.T) {
	ferrytest.Run(t, func(t *testing.T, k *ferrytest.Kit) {
		call := func(context.Context, *ferry.Msg[int]) error { return nil }
		w := worker.New(k.Broker, worker.Options{})

		//snippet:begin limit
		// A partner allows 10 calls a second in all, and 2 of one user.
		limit, err := guard.NewLimiter(guard.NewMemory(guard.MemoryOptions{}), guard.LimiterOptions{Limits: []guard.Limit{
			{Name: "partner", Key: guard.Constant("all"), Rule: guard.Rule{Limit: 10, Window: time.Second}},
			{Name: "user", Rule: guard.Rule{Limit: 2, Window: time.Second}}, // by the message's key
		}})
		if err != nil {
			t.Fatal(err)
		}
		worker.Handle(w, "calls", call, worker.Use(limit.Middleware()))
		//snippet:end

		for i := range 6 {
			if _, err := ferry.Publish(t.Context(), k.Broker, "calls", i, ferry.Key("ann")); err != nil {
				t.Fatal(err)
			}
		}
		k.Start(w)
		k.ExpectAcked("calls", 2)
		k.Drain()
		k.ExpectAcked("calls", 6)
		k.ExpectRetried("calls", 0)
	})
}
