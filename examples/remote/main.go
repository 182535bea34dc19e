// Command remote has two programs share one broker: one serves it over HTTP, the other opens it as ferry://, with the
// same code as any other broker.
package main

import (
	"context"
	"fmt"
	"log"
	"sync"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/examples/internal/gatewayserver"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/worker"
)

func main() {
	ctx, stop := context.WithCancel(context.Background())
	url, done := gatewayserver.Serve(ctx)
	defer done()

	// From here on it is another program, which knows a URL and nothing else.
	broker, err := open.URL(ctx, url)
	if err != nil {
		log.Fatal(err)
	}
	defer broker.Close(context.Background())
	billed := make(chan string)
	w := worker.New(broker, worker.Options{})
	worker.Handle(w, "orders", func(_ context.Context, m *ferry.Msg[string]) error {
		billed <- m.Value
		return nil
	})
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() {
		if err := w.Run(ctx); err != nil {
			log.Fatal(err)
		}
	})
	for _, order := range []string{"a ferry boat", "two oars"} {
		if _, err := ferry.Publish(ctx, broker, "orders", order, ferry.Key("ann")); err != nil {
			log.Fatal(err)
		}
		fmt.Println("billed over HTTP:", <-billed)
	}
}
