package deadletter_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/worker"
)

// failing returns a broker with three dead letters.
func failing(ctx context.Context) *ferry.Broker {
	broker, err := memory.Open(ctx, memory.Options{})
	if err != nil {
		panic(err)
	}
	for i := range 3 {
		if _, err := ferry.Publish(ctx, broker, "orders", map[string]int{"customer": i},
			ferry.ID(fmt.Sprint("order-", i))); err != nil {
			panic(err)
		}
	}
	running, stop := context.WithCancel(ctx)
	n := 0
	w := worker.New(broker, worker.Options{Concurrency: 1})
	worker.Handle(w, "orders", func(_ context.Context, m *ferry.Msg[map[string]int]) error {
		if n++; n == 3 {
			stop()
		}
		return worker.Fatal(fmt.Errorf("order %d has no user", m.Value["customer"]))
	})
	if err := w.Run(running); err != nil {
		panic(err)
	}
	return broker
}

func ExampleQueue_Browse() {
	ctx := context.Background()
	broker := failing(ctx)
	defer broker.Close(ctx)
	queue, _ := deadletter.New(broker)
	where, err := deadletter.ParseFilter(`reason == "fatal" and json.customer > 0`)
	if err != nil {
		fmt.Println(err)
		return
	}
	page, err := queue.Browse(ctx, deadletter.Query{Selection: deadletter.Selection{Topic: "orders", Where: where}})
	for _, l := range page.Letters {
		fmt.Println(l.ID, l.Dead.Error)
	}
	fmt.Println("scanned", page.Scanned, "of", page.Total, err)
	// Output:
	// order-1 order 1 has no user
	// order-2 order 2 has no user
	// scanned 3 of 3 <nil>
}

func ExampleQueue_Replay() {
	ctx := context.Background()
	broker := failing(ctx)
	defer broker.Close(ctx)
	queue, _ := deadletter.New(broker)
	patch, _ := deadletter.ParsePatch([]byte(`[{"op":"move","from":"/customer","path":"/user"}]`))
	report, err := queue.Replay(ctx,
		deadletter.ReplayOptions{Edit: deadletter.PatchBody(patch), Each: func(o deadletter.LetterReport) {
			fmt.Println(o.ID, o.Result)
		}})
	fmt.Println(report.Done, "replayed,", report.Skipped, "skipped", err)
	// Output:
	// order-0 replayed
	// order-1 replayed
	// order-2 replayed
	// 3 replayed, 0 skipped <nil>
}

func ExampleNewRecoverer() {
	ctx := context.Background()
	broker := failing(ctx)
	defer broker.Close(ctx)
	queue, _ := deadletter.New(broker)
	recoverer, err := deadletter.NewRecoverer(queue, deadletter.RecovererOptions{
		Strategies: []deadletter.Strategy{{
			Name:    "rename",
			Reasons: []ferry.Reason{deadletter.ReasonFatal},
			Backoff: ferry.Delays(0, time.Minute),
			Prepare: func(l deadletter.Letter, _ *ferry.Message) error {
				if l.ID == "order-0" {
					return errors.New("nobody can mend this one")
				}
				return nil
			},
			OnFailure: func(_ context.Context, l deadletter.Letter, err error) { fmt.Println(l.ID, "stays dead") },
		}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = recoverer.Once(ctx) // Run does it again and again, on one instance at a time
	fmt.Println(recoverer.Stats().Recovered, "recovered", err)
	// Output:
	// order-0 stays dead
	// 2 recovered <nil>
}

func ExampleParseFilter() {
	_, err := deadletter.ParseFilter(`reason == "timeout" and atempts > 3`)
	fmt.Println(errors.Is(err, ferry.ErrInvalid))
	var e *ferry.Error
	errors.As(err, &e)
	fmt.Println(e.Text)
	// Output:
	// true
	// filter "reason == \"timeout\" and atempts > 3" is broken at column 25: unknown name atempts
}
