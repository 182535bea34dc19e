// Command results waits for what a handler returns: the answer, how far it is meanwhile, and the text of a failure.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"sync"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/result"
	"github.com/ferrymq/ferry/worker"
)

func main() {
	ctx, stop := context.WithCancel(context.Background())
	broker, err := open.URL(ctx, cmp.Or(os.Getenv("FERRY_BROKER"), "memory://"))
	if err != nil {
		log.Fatal(err)
	}
	defer broker.Close(context.Background())
	keep, err := result.Keep(broker, result.Options{})
	if err != nil {
		log.Fatal(err)
	}

	half, goOn := make(chan string), make(chan bool)
	w := worker.New(broker, worker.Options{Concurrency: 4})
	worker.Handle(w, "reports", func(ctx context.Context, m *ferry.Msg[[]int]) error {
		sum := 0
		for i, n := range m.Value {
			sum += n
			result.Progress(ctx, int64(i+1), int64(len(m.Value)), "rows added")
			if i == 0 {
				half <- m.ID
				<-goOn
			}
		}
		if sum == 0 {
			return worker.Fatal(errors.New("nothing to report"))
		}
		return result.Return(ctx, sum)
	}, worker.Use(keep))
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() {
		if err := w.Run(ctx); err != nil {
			log.Fatal(err)
		}
	})
	<-w.Ready()

	// Whoever has the id can ask, in this process or in another one.
	id := publish(ctx, broker, 40, 2)
	<-half
	s, err := result.Get(ctx, broker, "reports", "default", id)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: %d of %d %s\n", s.State, s.Progress.Done, s.Progress.Total, s.Progress.Note)
	goOn <- true
	sum, err := result.Wait[int](ctx, broker, "reports", "default", id)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the sum is", sum)

	id = publish(ctx, broker)
	_, err = result.Wait[int](ctx, broker, "reports", "default", id)
	s, _ = result.Get(ctx, broker, "reports", "default", id)
	fmt.Printf("%t, it %s at attempt %d: %s\n", errors.Is(err, result.ErrFailed), s.State, s.Attempt, s.Error)
}

func publish(ctx context.Context, broker *ferry.Broker, rows ...int) string {
	r, err := ferry.Publish(ctx, broker, "reports", rows)
	if err != nil {
		log.Fatal(err)
	}
	return r.ID
}
