// Command delayed publishes reminders for later. None comes early, and the order is that of their times.
package main

import (
	"cmp"
	"context"
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

	start := time.Now()
	remind := func(text string, when ferry.PublishOption) {
		if _, err := ferry.Publish(ctx, broker, "reminders", text, when); err != nil {
			log.Fatal(err)
		}
	}
	remind("stand up", ferry.At(start.Add(1500*time.Millisecond)))
	remind("drink tea", ferry.Delay(time.Second))
	remind("start now", ferry.Delay(0))

	w := worker.New(broker, worker.Options{Concurrency: 1})
	worker.Handle(w, "reminders", func(_ context.Context, m *ferry.Msg[string]) error {
		fmt.Printf("%-9s  after %v\n", m.Value, time.Since(start).Truncate(100*time.Millisecond))
		if m.Value == "stand up" {
			done()
		}
		return nil
	})
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
