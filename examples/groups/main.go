// Command groups gives every order to two groups. Each handles all of them, at its own pace and with its own retries.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"sync/atomic"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/worker"
)

func main() {
	ctx, done := context.WithCancel(context.Background())
	defer done()
	broker, err := open.URL(ctx, cmp.Or(os.Getenv("FERRY_BROKER"), "memory://"))
	if err != nil {
		log.Fatal(err)
	}
	defer broker.Close(context.Background())

	const orders = 3
	var billed, shipped, failed atomic.Int64
	count := func(n *atomic.Int64) {
		n.Add(1)
		if billed.Load() == orders && shipped.Load() == orders {
			done()
		}
	}
	w := worker.New(broker, worker.Options{Concurrency: 4})
	worker.Handle(w, "orders", func(_ context.Context, m *ferry.Msg[int]) error {
		if m.Attempt == 1 {
			failed.Add(1)
			return errors.New("timeout to billing") // billing tries again; shipping does not see it twice
		}
		count(&billed)
		return nil
	}, worker.Group("billing"), worker.Retry(ferry.Delays(100*time.Millisecond)))
	worker.Handle(w, "orders", func(context.Context, *ferry.Msg[int]) error {
		count(&shipped)
		return nil
	}, worker.Group("shipping"))

	for _, group := range []string{"billing", "shipping"} { // before the first order, so that neither misses it
		if err := broker.Driver().EnsureGroup(ctx, "orders", group, ferry.GroupOptions{}); err != nil {
			log.Fatal(err)
		}
	}
	for id := range orders {
		if _, err := ferry.Publish(ctx, broker, "orders", id); err != nil {
			log.Fatal(err)
		}
	}
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("published %d, billed %d (after %d failures), shipped %d\n", orders, billed.Load(), failed.Load(),
		shipped.Load())
}
