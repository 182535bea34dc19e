package ferry_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver/memory"
)

type Order struct {
	ID int `json:"id"`
}

func open() *ferry.Broker {
	b, err := memory.Open(context.Background(), memory.Options{})
	if err != nil {
		panic(err)
	}
	return b
}

func ExamplePublish() {
	ctx, b := context.Background(), open()
	defer func() { _ = b.Close(ctx) }()

	r, err := ferry.Publish(ctx, b, "orders", Order{ID: 1}, ferry.ID("order-1"), ferry.Key("customer-7"))
	fmt.Println(r.ID, r.Duplicate, err)
	r, err = ferry.Publish(ctx, b, "orders", Order{ID: 1}, ferry.ID("order-1"), ferry.Key("customer-7"))
	fmt.Println(r.ID, r.Duplicate, err)
	// Output:
	// order-1 false <nil>
	// order-1 true <nil>
}

func ExamplePublish_later() {
	ctx, b := context.Background(), open()
	defer func() { _ = b.Close(ctx) }()

	_, err := ferry.Publish(ctx, b, "reminders", "stand up",
		ferry.Delay(30*time.Minute), ferry.TTL(time.Hour), ferry.Priority(ferry.High))
	stats, _ := b.Driver().Stats(ctx, "reminders")
	fmt.Println("delayed:", stats.Delayed, err)
	// Output: delayed: 1 <nil>
}

func ExampleBroker_Publish() {
	ctx, b := context.Background(), open()
	defer func() { _ = b.Close(ctx) }()

	_, err := b.Publish(ctx, &ferry.Message{Topic: "images", Body: []byte{0xff, 0xd8}, ContentType: "image/jpeg"})
	fmt.Println(err)
	_, err = b.Publish(ctx, &ferry.Message{Topic: "no spaces please"})
	fmt.Println(errors.Is(err, ferry.ErrInvalid))
	// Output:
	// <nil>
	// true
}

func ExampleBroker_PublishBatch() {
	ctx, b := context.Background(), open()
	defer func() { _ = b.Close(ctx) }()

	var batch []*ferry.Message
	for i := range 3 {
		m, err := ferry.NewMessage(ctx, b, "orders", Order{ID: i}, ferry.ID(fmt.Sprint("order-", i)))
		if err != nil {
			panic(err)
		}
		batch = append(batch, m)
	}
	receipts, err := b.PublishBatch(ctx, batch, ferry.Atomic())
	for _, r := range receipts {
		fmt.Println(r.ID)
	}
	fmt.Println(err)
	// Output:
	// order-0
	// order-1
	// order-2
	// <nil>
}

func ExampleBroker_PublishAsync() {
	ctx, b := context.Background(), open()
	defer func() { _ = b.Close(ctx) }()

	var futures []*ferry.Future
	for i := range 1000 {
		f, err := b.PublishAsync(ctx, &ferry.Message{Topic: "clicks", Body: fmt.Append(nil, i)})
		if err != nil {
			panic(err)
		}
		futures = append(futures, f)
	}
	if err := b.Flush(ctx); err != nil {
		panic(err)
	}
	_, err := futures[999].Wait(ctx)
	fmt.Println(len(futures), "published", err)
	// Output: 1000 published <nil>
}

func ExampleHooks() {
	ctx := context.Background()
	b, err := memory.Open(ctx, memory.Options{Broker: ferry.Options{Hooks: ferry.Hooks{
		Authorize: func(_ context.Context, a ferry.Access) error {
			if a.Topic == "secrets" {
				return errors.New("not for you")
			}
			return nil
		},
		Published: func(_ context.Context, e ferry.Event) { fmt.Println(e.Topic, "was published to:", e.Err == nil) },
	}}})
	if err != nil {
		panic(err)
	}
	defer func() { _ = b.Close(ctx) }()

	_, err = ferry.Publish(ctx, b, "secrets", 1)
	fmt.Println(errors.Is(err, ferry.ErrRefused))
	_, _ = ferry.Publish(ctx, b, "orders", 1)
	// Output:
	// secrets was published to: false
	// true
	// orders was published to: true
}

func ExampleExponential() {
	policy := ferry.Exponential(time.Second, time.Minute)
	policy.NoJitter = true
	for attempt := 1; attempt <= 7; attempt++ {
		wait, _ := policy.Next(attempt, "some-id", 0)
		fmt.Print(wait, " ")
	}
	// Output: 1s 2s 4s 8s 16s 32s 1m0s
}

func ExampleDelays() {
	policy := ferry.Delays(time.Second, 10*time.Second)
	for attempt := 1; attempt <= 3; attempt++ {
		wait, _ := policy.Next(attempt, "some-id", 0)
		fmt.Print(wait, " ")
	}
	// Output: 1s 10s 10s
}
