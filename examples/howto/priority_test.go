package howto_test

import (
	"context"
	"testing"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/ferrytest"
	"github.com/ferrymq/ferry/worker"
)

func TestPriorities(t *testing.T) {
	ferrytest.Run(t, func(t *testing.T, k *ferrytest.Kit) {
		ctx, b := t.Context(), k.Broker
		var seen []string
		send := func(_ context.Context, m *ferry.Msg[string]) error {
			seen = append(seen, m.Value)
			return nil
		}
		for range 100 {
			if _, err := ferry.Publish(ctx, b, "mails", "newsletter", ferry.Priority(ferry.Low)); err != nil {
				t.Fatal(err)
			}
		}

		//snippet:begin publish
		_, err := ferry.Publish(ctx, b, "mails", "your login code", ferry.Priority(ferry.Urgent))
		//snippet:end

		if err != nil {
			t.Fatal(err)
		}
		w := worker.New(b, worker.Options{Concurrency: 1})

		//snippet:begin weights
		// Of 100 handled while all four lanes are full: 1 low, 5 normal, 19 high, 75 urgent, in round figures.
		worker.Handle(w, "mails", send, worker.Weights(1, 4, 16, 64))
		//snippet:end

		k.Start(w)
		if len(seen) != 101 || seen[0] != "your login code" {
			t.Fatalf("%d, %q", len(seen), seen)
		}
	})
}
