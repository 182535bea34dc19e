// Command deadletter-replay finds out what failed for good, mends and replays it, and lets a recoverer bring back the
// rest.
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
	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/worker"
)

// Order is what handlers expect, and oldOrder what a forgotten program still publishes.
type (
	Order struct {
		ID   int `json:"id"`
		User int `json:"user"`
	}
	oldOrder struct {
		ID       int `json:"id"`
		Customer int `json:"customer"`
	}
)

func main() {
	ctx := context.Background()
	broker, err := open.URL(ctx, cmp.Or(os.Getenv("FERRY_BROKER"), "memory://"))
	check(err)
	defer broker.Close(ctx)
	queue, err := deadletter.New(broker)
	check(err)

	// Orders 1 to 6 of two keys: billing is down for the even ones, and the odd ones have a field that was renamed.
	for id := 1; id <= 6; id++ {
		var order any = Order{ID: id, User: 2}
		if id%2 == 1 {
			order = oldOrder{ID: id, Customer: 1}
		}
		_, err := ferry.Publish(ctx, broker, "orders", order, ferry.Key(fmt.Sprint("user-", id%2)))
		check(err)
	}
	var billing atomic.Bool // up
	work(broker, &billing, "", 6)

	tally, err := queue.Tally(ctx, deadletter.TallyQuery{By: deadletter.ByFingerprint})
	check(err)
	for _, b := range tally.Buckets {
		fmt.Printf("%d dead: %s: %s\n", b.Count, b.Reason, b.Fingerprint)
	}

	// The renamed field: a filter finds the letters, a JSON patch mends them. First only say what would be done.
	where, err := deadletter.ParseFilter(`error contains "no user" and json.customer > 0`)
	check(err)
	patch, err := deadletter.ParsePatch([]byte(`[{"op":"move","from":"/customer","path":"/user"}]`))
	check(err)
	mend := deadletter.ReplayOptions{Selection: deadletter.Selection{Topic: "orders", Where: where},
		Edit: deadletter.PatchBody(patch), DryRun: true}
	report, err := queue.Replay(ctx, mend)
	check(err)
	fmt.Printf("would mend %d, skip %d\n", report.Done, report.Skipped)
	mend.DryRun = false
	report, err = queue.Replay(ctx, mend)
	check(err)
	billing.Store(true)
	fmt.Printf("mended %d:\n", report.Done)
	work(broker, &billing, "  ", 3)

	// The timeouts come back by themselves: a strategy says when. Any number of instances may run this; one works.
	recoverer, err := deadletter.NewRecoverer(queue, deadletter.RecovererOptions{
		Interval: 50 * time.Millisecond,
		Strategies: []deadletter.Strategy{{Name: "soon", Reasons: []ferry.Reason{deadletter.ReasonDownstream},
			Backoff: ferry.Delays(200 * time.Millisecond)}},
	})
	check(err)
	running, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- recoverer.Run(running) }()
	fmt.Println("brought back by the recoverer:")
	work(broker, &billing, "  ", 3)
	for range time.Tick(time.Millisecond) {
		if recoverer.Stats().Recovered == 3 { // it hears a little later that it was successful
			break
		}
	}
	stop()
	check(<-done)
	page, err := queue.Browse(ctx, deadletter.Query{})
	check(err)
	fmt.Printf("recovered %d, %d dead letters left\n", recoverer.Stats().Recovered, len(page.Letters))
}

// work handles some orders.
func work(broker *ferry.Broker, billing *atomic.Bool, indent string, orders int) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	w := worker.New(broker, worker.Options{Concurrency: 1})
	worker.Handle(w, "orders", func(_ context.Context, m *ferry.Msg[Order]) error {
		if orders--; orders == 0 {
			stop() // this one is still handled and settled
		}
		switch {
		case m.Value.User == 0:
			return worker.Fatal(errors.New("order has no user"))
		case !billing.Load():
			return worker.Dead(deadletter.ReasonDownstream, fmt.Errorf("billing did not answer within %d ms", 100+m.Value.ID))
		}
		fmt.Printf("%sbilled order %d to user %d\n", indent, m.Value.ID, m.Value.User)
		return nil
	})
	check(w.Run(ctx))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
