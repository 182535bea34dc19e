// Command unique publishes one report at a time for each customer: while one is asked for and not made, another is
// refused, and told which one that is.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"sync"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/worker"
)

func main() {
	ctx, stop := context.WithCancel(context.Background())
	broker, err := open.URL(ctx, cmp.Or(os.Getenv("FERRY_BROKER"), "memory://"))
	if err != nil {
		log.Fatal(err)
	}
	defer broker.Close(context.Background())

	begun, goOn := make(chan bool), make(chan bool)
	w := worker.New(broker, worker.Options{})
	worker.Handle(w, "reports", func(_ context.Context, m *ferry.Msg[string]) error {
		begun <- true
		<-goOn
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
	<-w.Ready()

	ask := func(customer string) (string, error) {
		// An hour is longer than a report takes. After a crash in the wrong moment it is how long ann waits for another.
		r, err := ferry.Publish(ctx, broker, "reports", customer, ferry.Unique(customer, time.Hour))
		return r.ID, err
	}
	first, err := ask("ann")
	if err != nil {
		log.Fatal(err)
	}
	<-begun // it runs, and still counts
	_, err = ask("ann")
	var taken *ferry.UniqueError
	fmt.Println("a second report for ann is refused:", errors.Is(err, ferry.ErrConflict), errors.As(err, &taken) &&
		taken.ID == first)
	if _, err = ask("ben"); err != nil {
		log.Fatal(err)
	}
	fmt.Println("one for ben is not")
	goOn <- true
	<-begun
	goOn <- true

	for { // the id is free a moment after the last group has settled the message: on Kafka a second
		if _, err = ask("ann"); !errors.Is(err, ferry.ErrConflict) {
			break
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	if err != nil {
		log.Fatal(err)
	}
	<-begun
	fmt.Println("ann's report is made: she may ask for the next")
	goOn <- true
}
