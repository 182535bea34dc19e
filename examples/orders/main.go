// Command orders publishes an order and bills it ten seconds later, on the broker that FERRY_BROKER names.
package main

import (
	"cmp"
	"context"
	"errors"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/worker"
)

// Order is what the shop sells.
type Order struct {
	ID int `json:"id"`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	broker, err := open.URL(ctx, cmp.Or(os.Getenv("FERRY_BROKER"), "memory://")) // or memory.Open, to link one driver only
	if err != nil {
		log.Fatal(err)
	}
	defer broker.Close(context.Background())

	w := worker.New(broker, worker.Options{Concurrency: 16})
	worker.Handle(w, "orders", func(ctx context.Context, m *ferry.Msg[Order]) error {
		if m.Value.ID%10 == 0 {
			return errors.New("timeout to billing") // retried, then dead-lettered
		}
		slog.InfoContext(ctx, "billed", "id", m.Value.ID, "attempt", m.Attempt)
		return nil
	}, worker.MaxAttempts(5))

	if _, err := ferry.Publish(ctx, broker, "orders", Order{ID: 1}, ferry.Delay(10*time.Second)); err != nil {
		log.Fatal(err)
	}
	if err := w.Run(ctx); err != nil { // drains on SIGTERM
		log.Fatal(err)
	}
}
