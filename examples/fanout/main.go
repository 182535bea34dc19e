// Command fanout divides a text into lines, counts their words in parallel, and joins what was counted: the follow-ups
// are published with the acknowledgement of the text, all or none, and the last of them waits for the results of the
// others.
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"os"
	"strings"
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

	w := worker.New(broker, worker.Options{Concurrency: 8})
	w.Use(keep)
	worker.Handle(w, "texts", divide)
	worker.Handle(w, "lines", func(ctx context.Context, m *ferry.Msg[string]) error {
		return result.Return(ctx, len(strings.Fields(m.Value)))
	})
	worker.Handle(w, "sums", func(ctx context.Context, m *ferry.Msg[[]string]) error {
		counts, err := result.WaitAll[int](ctx, broker, "lines", "default", m.Value...)
		if err != nil {
			return err // with the text of each line that failed
		}
		sum := 0
		for i, n := range counts {
			fmt.Printf("line %d has %d words\n", i+1, n)
			sum += n
		}
		return result.Return(ctx, sum)
	}, worker.Concurrency(1)) // it waits for lines: it must not take every place from them
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() {
		if err := w.Run(ctx); err != nil {
			log.Fatal(err)
		}
	})
	<-w.Ready()

	r, err := ferry.Publish(ctx, broker, "texts", "the ferry leaves\nat noon\nand comes back with the moon")
	if err != nil {
		log.Fatal(err)
	}
	id, err := result.Wait[string](ctx, broker, "texts", "default", r.ID)
	if err != nil {
		log.Fatal(err)
	}
	sum, err := result.Wait[int](ctx, broker, "sums", "default", id)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("in all", sum)
}

// divide emits a message for each line, and one that joins them. Its result is the id of that one.
func divide(ctx context.Context, m *ferry.Msg[string]) error {
	var ids []string
	for i, line := range strings.Split(m.Value, "\n") {
		id := fmt.Sprintf("%s-%d", m.ID, i+1) // the same if the text is handled again
		if err := worker.Emit(ctx, "lines", line, ferry.ID(id)); err != nil {
			return err
		}
		ids = append(ids, id)
	}
	sum := m.ID + "-sum"
	if err := worker.Emit(ctx, "sums", ids, ferry.ID(sum)); err != nil {
		return err
	}
	return result.Return(ctx, sum)
}
