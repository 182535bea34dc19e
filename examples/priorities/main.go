// Command priorities shows the four lanes: urgent ones come first, low ones wait but do not starve.
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"os"

	"github.com/ferrymq/ferry"
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

	lanes := []ferry.Lane{ferry.Low, ferry.Normal, ferry.High, ferry.Urgent}
	const each = 100
	for range each {
		for _, lane := range lanes {
			if _, err := ferry.Publish(ctx, broker, "mails", lane.String(), ferry.Priority(lane)); err != nil {
				log.Fatal(err)
			}
		}
	}

	handled, total := map[string]int{}, 0
	w := worker.New(broker, worker.Options{Concurrency: 1})
	worker.Handle(w, "mails", func(_ context.Context, m *ferry.Msg[string]) error {
		handled[m.Value]++
		total++
		if total == each {
			fmt.Println("of the first 100 handled:", handled)
		}
		if total == each*len(lanes) {
			fmt.Println("in the end:              ", handled)
			done()
		}
		return nil
	})
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
