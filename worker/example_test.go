package worker_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/worker"
)

type Order struct {
	ID    int
	Items int
}

// example opens a broker in memory and publishes orders 1 to n.
func example(n int, opts ...ferry.PublishOption) (broker *ferry.Broker, end func()) {
	ctx := context.Background()
	broker, err := memory.Open(ctx, memory.Options{})
	if err != nil {
		panic(err)
	}
	for id := 1; id <= n; id++ {
		if _, err := ferry.Publish(ctx, broker, "orders", Order{ID: id, Items: id % 3}, opts...); err != nil {
			panic(err)
		}
	}
	return broker, func() { _ = broker.Close(ctx) }
}

// until runs w until the condition holds, as a program does until it gets a signal.
func until(w *worker.Worker, broker *ferry.Broker, done func(g ferry.GroupStats) bool) {
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	go func() {
		for ctx.Err() == nil {
			if s, err := broker.Driver().Stats(ctx, "orders"); err == nil && done(s.Groups[0]) {
				stop()
			}
			<-time.After(time.Millisecond)
		}
	}()
	if err := w.Run(ctx); err != nil {
		fmt.Println(err)
	}
}

func settled(n int) func(ferry.GroupStats) bool {
	return func(g ferry.GroupStats) bool { return int(g.Acked+g.Dropped)+int(g.Dead) == n }
}

func Example() {
	broker, end := example(3)
	defer end()

	w := worker.New(broker, worker.Options{Concurrency: 1})
	worker.Handle(w, "orders", func(_ context.Context, m *ferry.Msg[Order]) error {
		if m.Value.ID == 2 && m.Attempt == 1 {
			return errors.New("timeout to billing") // retried
		}
		fmt.Println("billed", m.Value.ID, "attempt", m.Attempt)
		return nil
	}, worker.MaxAttempts(5), worker.Retry(ferry.Delays(50*time.Millisecond)))

	until(w, broker, settled(3)) // w.Run(ctx): drains when ctx ends
	// Output:
	// billed 1 attempt 1
	// billed 3 attempt 1
	// billed 2 attempt 2
}

func ExampleHandleRaw() {
	broker, end := example(1, ferry.Header("source", "web"))
	defer end()

	w := worker.New(broker, worker.Options{})
	worker.HandleRaw(w, "orders", func(_ context.Context, d *ferry.Delivery) error {
		fmt.Printf("%s from the %s: %s\n", d.ContentType, d.Headers["source"], d.Body)
		return nil
	})

	until(w, broker, settled(1))
	// Output: application/json from the web: {"ID":1,"Items":1}
}

func ExampleHandleBatch() {
	broker, end := example(5)
	defer end()

	w := worker.New(broker, worker.Options{Concurrency: 1})
	worker.HandleBatch(w, "orders", func(_ context.Context, ms []*ferry.Msg[Order]) error {
		fmt.Println("insert", len(ms), "rows")
		errs := make(worker.ItemErrors, len(ms))
		for i, m := range ms {
			if m.Value.Items == 0 {
				errs[i] = worker.Dead("empty_order", nil) // this one only
			}
		}
		return errs
	}, worker.BatchSize(5), worker.BatchWait(time.Second))

	until(w, broker, settled(5))
	s, _ := broker.Driver().Stats(context.Background(), "orders")
	fmt.Println(s.Groups[0].Acked, "acknowledged,", s.Groups[0].Dead, "dead")
	// Output:
	// insert 5 rows
	// 4 acknowledged, 1 dead
}

func ExampleRetryAfter() {
	broker, end := example(1)
	defer end()

	w := worker.New(broker, worker.Options{})
	worker.Handle(w, "orders", func(_ context.Context, m *ferry.Msg[Order]) error {
		if m.Attempt == 1 {
			// The service said 429 with Retry-After.
			return worker.RetryAfter(errors.New("too many requests"), 20*time.Millisecond)
		}
		fmt.Println("billed at attempt", m.Attempt)
		return nil
	})

	until(w, broker, settled(1))
	// Output: billed at attempt 2
}

func ExampleDead() {
	broker, end := example(1)
	defer end()

	w := worker.New(broker, worker.Options{})
	worker.Handle(w, "orders", func(_ context.Context, m *ferry.Msg[Order]) error {
		return worker.Dead("unknown_customer", fmt.Errorf("order %d has no customer", m.Value.ID))
	})

	until(w, broker, settled(1))
	page, _ := broker.Driver().Browse(context.Background(), ferry.Query{Topic: "orders", Group: "default", State: "dead"})
	dead := page.Entries[0].Dead
	fmt.Println(dead.Reason, "-", dead.Error)
	// Output: unknown_customer - order 1 has no customer
}

func ExampleDrop() {
	broker, end := example(1)
	defer end()

	w := worker.New(broker, worker.Options{})
	worker.Handle(w, "orders", func(context.Context, *ferry.Msg[Order]) error {
		return worker.Drop(errors.New("a test order"))
	})

	until(w, broker, settled(1))
	s, _ := broker.Driver().Stats(context.Background(), "orders")
	fmt.Println(s.Groups[0].Dropped, "dropped,", s.Groups[0].Dead, "dead")
	// Output: 1 dropped, 0 dead
}

func ExampleEmit() {
	broker, end := example(2)
	defer end()

	w := worker.New(broker, worker.Options{Concurrency: 1})
	worker.Handle(w, "orders", func(ctx context.Context, m *ferry.Msg[Order]) error {
		// Published with the acknowledgement of the order, or not at all.
		if err := worker.Emit(ctx, "invoices", fmt.Sprintf("invoice of order %d", m.Value.ID)); err != nil {
			return err
		}
		if m.Value.ID == 2 {
			return worker.Fatal(errors.New("no billing address"))
		}
		return nil
	})

	until(w, broker, settled(2))
	page, _ := broker.Driver().Browse(context.Background(),
		ferry.Query{Topic: "invoices", Group: "default", State: "ready"})
	for _, e := range page.Entries {
		fmt.Printf("%s\n", e.Body)
	}
	// Output: "invoice of order 1"
}

func ExampleWorker_Use() {
	broker, end := example(2)
	defer end()

	w := worker.New(broker, worker.Options{Concurrency: 1})
	w.Use(func(next worker.Handler) worker.Handler {
		return func(ctx context.Context, d *ferry.Delivery) error {
			err := next(ctx, d)
			fmt.Println("handled:", err)
			return err
		}
	})
	worker.Handle(w, "orders", func(_ context.Context, m *ferry.Msg[Order]) error {
		if m.Value.ID == 2 {
			return worker.Fatal(errors.New("no such article"))
		}
		return nil
	})

	until(w, broker, settled(2))
	// Output:
	// handled: <nil>
	// handled: no such article
}

func ExampleTimeout() {
	broker, end := example(1)
	defer end()

	w := worker.New(broker, worker.Options{})
	worker.Handle(w, "orders", func(ctx context.Context, _ *ferry.Msg[Order]) error {
		<-ctx.Done() // a call that takes too long
		fmt.Println(context.Cause(ctx))
		return ctx.Err()
	}, worker.Timeout(20*time.Millisecond), worker.MaxAttempts(1))

	until(w, broker, settled(1))
	// Output: handler timeout: context deadline exceeded
}
