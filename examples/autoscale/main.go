// Command autoscale shows a worker whose number of handlers follows a wave of messages, and what a health check says of
// it.
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/monitor"
	"github.com/ferrymq/ferry/open"
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

	w := worker.New(broker, worker.Options{Scaling: worker.Scaling{
		Min: 2, Max: 32, Interval: 100 * time.Millisecond, Cooldown: time.Second, // quick, to watch; the defaults are calmer
	}})
	worker.HandleRaw(w, "mail", func(ctx context.Context, _ *ferry.Delivery) error {
		select {
		case <-time.After(20 * time.Millisecond): // the mail server takes its time
		case <-ctx.Done():
		}
		return nil
	})
	m, err := monitor.New(broker, monitor.Options{Workers: []*worker.Worker{w}})
	if err != nil {
		log.Fatal(err)
	}
	go watch(ctx, done, broker, w, m)
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
}

// watch sends a wave of mails and reports until the worker has calmed down.
func watch(ctx context.Context, done func(), broker *ferry.Broker, w *worker.Worker, m *monitor.Monitor) {
	defer done()
	fmt.Printf("idle:       %2d handlers, %s\n", w.Stats().Concurrency, m.Look(ctx).Health.Status)
	for i := range 2000 {
		if _, err := ferry.Publish(ctx, broker, "mail", fmt.Sprintf("mail %d", i)); err != nil {
			log.Print(err)
			return
		}
	}
	most := 0
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		<-tick.C
		s := w.Stats()
		if handled := s.Consumers[0].Acked; handled == 2000 && s.Concurrency == 2 {
			fmt.Printf("the wave:   %2d handlers for %d mails\n", most, handled)
			fmt.Printf("calm again: %2d handlers, %s\n", s.Concurrency, m.Look(ctx).Health.Status)
			return
		}
		most = max(most, s.Concurrency)
	}
}
