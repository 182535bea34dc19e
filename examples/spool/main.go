// Command spool publishes while its broker is away: what the broker does not take waits in a directory, and gets there
// in order when it is back.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"sync/atomic"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/spool"
	"github.com/ferrymq/ferry/spool/spooldisk"
	"github.com/ferrymq/ferry/worker"
)

func main() {
	ctx, stop := context.WithCancel(context.Background())
	dir, err := os.MkdirTemp("", "ferry-spool-")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()

	// With a server it is one parameter: open.URL(ctx, "redis://localhost:6379?spool=/var/lib/orders/spool").
	server := &server{}
	if server.Driver, err = memory.New(ctx, memory.Options{}); err != nil {
		log.Fatal(err)
	}
	back := make(chan bool, 1)
	spooled, err := spooldisk.Open(ctx, server, spooldisk.Options{Root: dir, Spool: spool.Options{Hooks: spool.Hooks{
		Away: func(error) { fmt.Println("alert: the broker is away") },
		Back: func(time.Duration) { back <- true },
	}}})
	if err != nil {
		log.Fatal(err)
	}
	broker, err := ferry.New(spooled, ferry.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer broker.Close(context.Background())

	publish(ctx, broker, 1)
	server.away.Store(true)
	publish(ctx, broker, 2)
	publish(ctx, broker, 3)
	s := spooled.SpoolStats()
	fmt.Printf("%d messages of %d key wait on the disk\n", s.Messages, s.Keys)

	server.away.Store(false)
	<-back
	fmt.Println("the broker is back")
	publish(ctx, broker, 4) // behind the others of its key, whichever way it goes

	w := worker.New(broker, worker.Options{Concurrency: 4})
	worker.Handle(w, "orders", func(_ context.Context, m *ferry.Msg[int]) error {
		fmt.Println("order", m.Value, "of", m.Key)
		if m.Value == 4 {
			stop()
		}
		return nil
	})
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
}

func publish(ctx context.Context, broker *ferry.Broker, order int) {
	r, err := ferry.Publish(ctx, broker, "orders", order, ferry.Key("ann"), ferry.ID(fmt.Sprint("order-", order)))
	if err != nil {
		log.Fatal(err)
	}
	if order < 4 {
		fmt.Printf("order %d is accepted, spooled: %t\n", order, r.Spooled)
	}
}

// server stands for a broker that can be away.
type server struct {
	driver.Driver
	away atomic.Bool
}

func (s *server) Publish(ctx context.Context, ms []*driver.Message, o driver.PublishOptions) ([]driver.Receipt, error) {
	if !s.away.Load() {
		return s.Driver.Publish(ctx, ms, o)
	}
	receipts := make([]driver.Receipt, len(ms))
	for i := range receipts {
		receipts[i].Err = driver.NewError(driver.ErrNotApplied, "connection refused", "", nil)
	}
	return receipts, receipts[0].Err
}
