// Command deadletters lets messages fail for good, looks at what is kept of them, and replays one.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"slices"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/worker"
)

const attempts = 3

func main() {
	ctx := context.Background()
	broker, err := open.URL(ctx, cmp.Or(os.Getenv("FERRY_BROKER"), "memory://"))
	if err != nil {
		log.Fatal(err)
	}
	defer broker.Close(ctx)

	for _, order := range []string{"fine", "declined", "unlucky"} {
		if _, err := ferry.Publish(ctx, broker, "orders", order, ferry.ID(order)); err != nil {
			log.Fatal(err)
		}
	}
	work(broker, 3, errors.New("timeout to billing after 3s"))

	dead, err := broker.Driver().Browse(ctx, ferry.Query{Topic: "orders", Group: "default", State: "dead"})
	if err != nil {
		log.Fatal(err)
	}
	slices.SortFunc(dead.Entries, func(a, b ferry.Entry) int { return cmp.Compare(a.ID, b.ID) })
	for _, e := range dead.Entries {
		fmt.Printf("dead: %-8s  %s: %s, %d attempts, advice: %s\n", e.ID, e.Dead.Reason, e.Dead.Error, e.Dead.Attempts,
			e.Dead.Action)
	}

	unlucky := ferry.Target{Topic: "orders", Group: "default", ID: "unlucky"}
	if err := errors.Join(broker.Driver().Move(ctx, []ferry.Move{{Target: unlucky}})...); err != nil {
		log.Fatal(err)
	}
	work(broker, 1, nil)
}

// work handles some orders to their end, while billing answers as it does.
func work(broker *ferry.Broker, orders int, billing error) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	w := worker.New(broker, worker.Options{Concurrency: 1})
	worker.Handle(w, "orders", func(_ context.Context, m *ferry.Msg[string]) error {
		if m.Value != "unlucky" || billing == nil || m.Attempt == attempts {
			if orders--; orders == 0 {
				stop() // this one is still handled and settled
			}
		}
		switch {
		case m.Value == "declined":
			return worker.Dead("card_declined", errors.New("insufficient funds"))
		case m.Value == "unlucky" && billing != nil:
			return billing
		}
		fmt.Printf("billed: %s\n", m.Value)
		return nil
	}, worker.MaxAttempts(attempts), worker.Retry(ferry.Delays(50*time.Millisecond)))
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
