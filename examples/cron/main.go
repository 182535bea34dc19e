// Command cron runs a schedule in two instances at once: each tick fires once. Then it is paused, triggered, and
// removed.
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"os"
	"sync"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/schedule"
	"github.com/ferrymq/ferry/worker"
)

func main() {
	ctx, done := context.WithCancel(context.Background())
	defer done()
	broker, err := open.URL(ctx, cmp.Or(os.Getenv("FERRY_BROKER"), "memory://"))
	if err != nil {
		log.Fatal(err)
	}
	defer broker.Close(context.Background())

	var running sync.WaitGroup
	var s *schedule.Scheduler
	for range 2 { // in real life: two processes
		if s, err = schedule.New(broker, schedule.Options{}); err != nil {
			log.Fatal(err)
		}
		declare(ctx, broker, s) // every instance does, when it starts
		instance := s
		running.Go(func() { check(instance.Run(ctx)) })
	}

	fired := make(chan string, 100) // the tick of each message; none if it was triggered
	w := worker.New(broker, worker.Options{})
	worker.Handle(w, "heartbeats", func(_ context.Context, m *ferry.Msg[string]) error {
		fired <- m.Headers[schedule.HeaderTick]
		return nil
	})
	running.Go(func() { check(w.Run(ctx)) })

	fmt.Println("two instances run one schedule:")
	first := tick(<-fired)
	for range 3 {
		fmt.Println("  the next tick is", tick(<-fired).Sub(first), "after the first")
	}
	check(s.Pause(ctx, "heartbeat"))
	_, err = s.Trigger(ctx, "heartbeat")
	check(err)
	for <-fired != "" { // a tick may have come before the pause
	}
	fmt.Println("paused, and triggered once more")
	check(s.Delete(ctx, "heartbeat"))

	fmt.Println("nine o'clock on working days in Shanghai:")
	ticks, err := schedule.Next("0 9 * * MON-FRI", "Asia/Shanghai", time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), 3)
	check(err)
	for _, t := range ticks {
		fmt.Println(" ", t.Format(time.RFC3339))
	}
	done()
	running.Wait()
}

// declare says what is published when. What is there already stays as it is.
func declare(ctx context.Context, broker *ferry.Broker, s *schedule.Scheduler) {
	m, err := ferry.NewMessage(ctx, broker, "heartbeats", "still here", ferry.Key("heartbeat"))
	check(err)
	check(s.Put(ctx, schedule.Schedule{Name: "heartbeat", Spec: "@every 1s", Missed: schedule.All, Message: m}))
}

func tick(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	check(err)
	return t
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
