package open_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/open"
)

// The environment chooses the broker; without it the program runs on its own.
func ExampleURL() {
	ctx := context.Background()
	broker, err := open.URL(ctx, cmp.Or(os.Getenv("EXAMPLE_BROKER"), "memory://"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = broker.Close(ctx) }()

	receipt, err := ferry.Publish(ctx, broker, "orders", map[string]int{"id": 1}, ferry.ID("order-1"))
	fmt.Println(receipt.ID, err)
	// Output: order-1 <nil>
}

func ExampleURL_options() {
	ctx := context.Background()
	broker, err := open.URL(ctx, "memory://?max_messages=1000", ferry.Options{Hooks: ferry.Hooks{
		Published: func(_ context.Context, e ferry.Event) { fmt.Println("published to", e.Topic) },
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = broker.Close(ctx) }()

	_, _ = ferry.Publish(ctx, broker, "orders", "an order")
	// Output: published to orders
}

// Every error says what to do next.
func ExampleURL_mistake() {
	_, err := open.URL(context.Background(), "disk://orders")
	var e *ferry.Error
	if errors.As(err, &e) {
		fmt.Println(e.Text)
		fmt.Println("hint:", e.Hint)
	}
	// Output:
	// a disk:// URL names a directory
	// hint: write disk:///absolute/path or disk://./relative/path
}
