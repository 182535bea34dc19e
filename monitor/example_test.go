package monitor_test

import (
	"context"
	"fmt"
	"log"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/monitor"
)

// A health check says what is wrong in words.
func Example() {
	ctx := context.Background()
	broker, err := memory.Open(ctx, memory.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer broker.Close(ctx)
	if err := broker.Driver().EnsureGroup(ctx, "orders", "billing", ferry.GroupOptions{}); err != nil {
		log.Fatal(err)
	}
	m, err := monitor.New(broker, monitor.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Look(ctx).Health.Status)
	if _, err := ferry.Publish(ctx, broker, "orders", "a boat"); err != nil {
		log.Fatal(err)
	}
	h := m.Look(ctx).Health
	fmt.Println(h.Status, h.Reasons)
	// Output:
	// healthy
	// degraded [group billing of topic orders: 1 messages wait and nothing consumes them]
}
