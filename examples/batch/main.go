// Command batch writes measurements ten at a time. One of them is bad, and only that one is tried again.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
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

	var ms []*ferry.Message
	for n := range 25 {
		m, err := ferry.NewMessage(ctx, broker, "measurements", n)
		if err != nil {
			log.Fatal(err)
		}
		ms = append(ms, m)
	}
	if _, err := broker.PublishBatch(ctx, ms); err != nil {
		log.Fatal(err)
	}

	written := 0
	w := worker.New(broker, worker.Options{Concurrency: 1})
	worker.HandleBatch(w, "measurements", func(_ context.Context, batch []*ferry.Msg[int]) error {
		errs := make(worker.ItemErrors, len(batch))
		for i, m := range batch {
			if m.Value == 7 && m.Attempt == 1 {
				errs[i] = errors.New("sensor 7 is upside down")
				continue
			}
			written++
		}
		fmt.Printf("batch of %d, %d written so far\n", len(batch), written)
		if written == len(ms) {
			done()
		}
		return errs
	}, worker.BatchSize(10), worker.BatchWait(100*time.Millisecond), worker.Retry(ferry.Delays(500*time.Millisecond)))
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
