// Command transaction publishes to two topics, all or none. A producer commits, one rolls back, and one vanishes before
// it has decided: it is checked back whether its work was done.
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
	"github.com/ferrymq/ferry/transaction"
	"github.com/ferrymq/ferry/worker"
)

// orders stands for your database: what is in it was done.
var orders sync.Map

func main() {
	ctx, stop := context.WithCancel(context.Background())
	broker, err := open.URL(ctx, cmp.Or(os.Getenv("FERRY_BROKER"), "memory://"))
	must(err)
	defer broker.Close(context.Background())

	begin(ctx, broker, "boat")
	must(begin(ctx, broker, "rope").Commit(ctx))
	must(begin(ctx, broker, "moon").Rollback(ctx))

	resolver, err := transaction.NewResolver(broker, transaction.ResolverOptions{
		After: 500 * time.Millisecond, Look: 100 * time.Millisecond, // a minute and 5 s by default
		Checks: map[string]transaction.Check{"orders": check},
	})
	must(err)
	told := make(chan string)
	w := worker.New(broker, worker.Options{})
	for _, topic := range []string{"bills", "parcels"} {
		worker.Handle(w, topic, func(_ context.Context, m *ferry.Msg[string]) error {
			told <- topic + ": " + m.Value
			return nil
		})
	}
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { must(w.Run(ctx)) })
	show(told, "committed:")

	orders.Store("boat", true) // its producer did this, and vanished
	running.Go(func() { must(resolver.Run(ctx)) })
	show(told, "checked back:")
}

// begin stores halves about an order; nobody sees them yet.
func begin(ctx context.Context, b *ferry.Broker, item string) *transaction.Tx {
	tx, err := transaction.Begin(b, transaction.Options{Kind: "orders", Subject: item})
	must(err)
	bill, err := ferry.NewMessage(ctx, b, "bills", item)
	must(err)
	parcel, err := ferry.NewMessage(ctx, b, "parcels", item)
	must(err)
	_, err = tx.Publish(ctx, bill, parcel)
	must(err)
	return tx
}

// check says whether an order was done whose producer vanished.
func check(_ context.Context, t transaction.Transaction) (transaction.State, error) {
	if _, done := orders.Load(t.Subject); done {
		return transaction.Committed, nil
	}
	return transaction.RolledBack, nil
}

// show prints one message of each topic.
func show(told <-chan string, title string) {
	first, second := <-told, <-told
	fmt.Println(title)
	fmt.Println(" ", min(first, second))
	fmt.Println(" ", max(first, second))
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
