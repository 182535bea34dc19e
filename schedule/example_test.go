package schedule_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/schedule"
)

type Report struct{ Kind string }

// A report every night, whoever runs the program and however many do.
func Example() {
	ctx := context.Background()
	broker, err := open.URL(ctx, "memory://")
	if err != nil {
		log.Fatal(err)
	}
	defer broker.Close(ctx)
	s, err := schedule.New(broker, schedule.Options{})
	if err != nil {
		log.Fatal(err)
	}
	report, err := ferry.NewMessage(ctx, broker, "reports", Report{Kind: "daily"})
	if err != nil {
		log.Fatal(err)
	}
	daily := schedule.Schedule{Name: "daily-report", Spec: "0 3 * * *", Zone: "Europe/Berlin", Message: report}
	if err := s.Put(ctx, daily); err != nil { // every instance may do this when it starts
		log.Fatal(err)
	}
	st, err := s.Get(ctx, "daily-report")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(st.State, st.Missed)
	// s.Run(ctx) publishes the reports, in any number of programs.

	// Output: active once
}

func ExampleNext() {
	ticks, err := schedule.Next("30 2 * * *", "Europe/Berlin", time.Date(2026, 3, 28, 0, 0, 0, 0, time.UTC), 3)
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range ticks {
		fmt.Println(t)
	}
	// Output:
	// 2026-03-28 01:30:00 +0000 UTC
	// 2026-03-29 01:00:00 +0000 UTC
	// 2026-03-30 00:30:00 +0000 UTC
}
