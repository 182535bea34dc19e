// Command emit lets an order cause a mail: published with the order's acknowledgement, or not at all.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
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

	w := worker.New(broker, worker.Options{Concurrency: 4})
	worker.Handle(w, "orders", func(ctx context.Context, m *ferry.Msg[string]) error {
		if err := worker.Emit(ctx, "mails", "thank you for the "+m.Value); err != nil {
			return err
		}
		if m.Attempt == 1 {
			fmt.Println("order failed: its mail is not sent")
			return errors.New("timeout to billing")
		}
		fmt.Println("order billed: its mail goes out")
		return nil
	}, worker.Retry(ferry.Delays(100*time.Millisecond)))
	worker.Handle(w, "mails", func(_ context.Context, m *ferry.Msg[string]) error {
		fmt.Println("mail sent:", m.Value)
		done()
		return nil
	})

	if _, err := ferry.Publish(ctx, broker, "orders", "ferry boat"); err != nil {
		log.Fatal(err)
	}
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
