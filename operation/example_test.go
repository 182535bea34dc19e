package operation_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/operation"
	"github.com/ferrymq/ferry/operation/kinds"
)

// What is delayed for one customer is cancelled: counted first, then in the background, by whoever runs a worker.
func Example() {
	ctx := context.Background()
	broker, err := open.URL(ctx, "memory://")
	if err != nil {
		log.Fatal(err)
	}
	defer broker.Close(ctx)
	for i := range 10 {
		key := []string{"alice", "bob"}[i%2]
		if _, err := ferry.Publish(ctx, broker, "mails", fmt.Sprintf("mail %d", i), ferry.Key(key),
			ferry.Delay(24*time.Hour)); err != nil {
			log.Fatal(err)
		}
	}
	queue, err := operation.New(broker, kinds.All(broker)...)
	if err != nil {
		log.Fatal(err)
	}
	cancel := kinds.Purge{Messages: kinds.Messages{Topic: "mails", States: []ferry.State{driver.StateDelayed},
		Where: `key == "bob"`}}.Request()
	cancel.DryRun = true
	count, err := queue.Do(ctx, cancel)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("would cancel", count.Done)

	cancel.DryRun = false
	op, err := queue.Submit(ctx, cancel)
	if err != nil {
		log.Fatal(err)
	}
	worker, err := operation.NewWorker(queue, operation.WorkerOptions{})
	if err != nil {
		log.Fatal(err)
	}
	if err := worker.Drain(ctx); err != nil { // or Run, in any number of programs
		log.Fatal(err)
	}
	if op, err = queue.Get(ctx, op.ID); err != nil {
		log.Fatal(err)
	}
	fmt.Println(op.State, op.Done)

	// Output:
	// would cancel 5
	// done 5
}
