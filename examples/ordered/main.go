// Command ordered handles many accounts in parallel and each of them in order, also when a step has to be retried.
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
	ctx, done := context.WithCancel(context.Background())
	defer done()
	broker, err := open.URL(ctx, cmp.Or(os.Getenv("FERRY_BROKER"), "memory://"))
	if err != nil {
		log.Fatal(err)
	}
	defer broker.Close(context.Background())

	accounts := []string{"alice", "bob", "小明"}
	const steps = 5
	for step := range steps {
		for _, account := range accounts {
			if _, err := ferry.Publish(ctx, broker, "transfers", step, ferry.Key(account)); err != nil {
				log.Fatal(err)
			}
		}
	}

	var mu sync.Mutex
	seen, total := map[string][]int{}, 0
	w := worker.New(broker, worker.Options{Concurrency: 8})
	worker.Handle(w, "transfers", func(_ context.Context, m *ferry.Msg[int]) error {
		if m.Key == "bob" && m.Value == 1 && m.Attempt == 1 {
			return errors.New("bank is busy") // bob's later transfers wait for it, nobody else's do
		}
		mu.Lock()
		defer mu.Unlock()
		seen[m.Key] = append(seen[m.Key], m.Value)
		if total++; total == steps*len(accounts) {
			done()
		}
		return nil
	}, worker.Retry(ferry.Delays(200*time.Millisecond)))
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
	for _, account := range accounts {
		fmt.Println(account, seen[account])
	}
}
