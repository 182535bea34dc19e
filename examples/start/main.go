// Command start is the program of docs/start.md: a shop that bills orders, each customer's in order, and mails later.
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/open"
)

func main() {
	ctx, done := context.WithCancel(context.Background())
	defer done()
	broker, err := open.URL(ctx, cmp.Or(os.Getenv("FERRY_BROKER"), "memory://"))
	if err != nil {
		log.Fatal(err)
	}
	defer broker.Close(context.Background())

	for _, o := range []Order{{1, "ann"}, {2, "ann"}, {3, "bob"}, {4, "bob"}} {
		if _, err := ferry.Publish(ctx, broker, "orders", o, ferry.Key(o.Customer)); err != nil {
			log.Fatal(err)
		}
	}
	if _, err := ferry.Publish(ctx, broker, "mails", "see you again", ferry.Delay(2*time.Second)); err != nil {
		log.Fatal(err)
	}

	s := &shop{print: func(line string) { fmt.Println(line) }, closing: done}
	if err := s.worker(broker).Run(ctx); err != nil { // until the shop closes
		log.Fatal(err)
	}
}
