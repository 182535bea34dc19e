// Command deadletters lets messages fail for good, looks at what is kept of them, and replays one.
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
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/worker"
)

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
	work(broker, errors.New("timeout to billing after 3s"))

	dead, err := broker.Driver().Browse(ctx, driver.Query{Topic: "orders", Group: driver.DefaultGroup, State: driver.StateDead})
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range dead.Entries {
		fmt.Printf("dead: %-8s  %s: %s, %d attempts, advice: %s\n", e.ID, e.Dead.Reason, e.Dead.Error, e.Dead.Attempts, e.Dead.Action)
	}

	unlucky := driver.Target{Topic: "orders", Group: driver.DefaultGroup, ID: "unlucky"}
	if err := errors.Join(broker.Driver().Move(ctx, []driver.Move{{Target: unlucky}})...); err != nil {
		log.Fatal(err)
	}
	work(broker, nil)
}

// work handles orders for a second, while billing answers as it does.
func work(broker *ferry.Broker, billing error) {
	ctx, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	w := worker.New(broker, worker.Options{Concurrency: 1})
	worker.Handle(w, "orders", func(_ context.Context, m *ferry.Msg[string]) error {
		switch {
		case m.Value == "declined":
			return worker.Dead("card_declined", errors.New("insufficient funds"))
		case m.Value == "unlucky" && billing != nil:
			return billing
		}
		fmt.Printf("billed: %s\n", m.Value)
		return nil
	}, worker.MaxAttempts(3), worker.Retry(ferry.Delays(50*time.Millisecond)))
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
