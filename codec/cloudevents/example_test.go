package cloudevents_test

import (
	"context"
	"fmt"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/codec"
	"github.com/ferrymq/ferry/codec/cloudevents"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/worker"
)

func Example() {
	type Order struct {
		ID int `json:"id"`
	}
	ctx, stop := context.WithCancel(context.Background())
	b, err := memory.Open(ctx, memory.Options{
		Broker: ferry.Options{Codecs: []codec.Codec{codec.JSON, cloudevents.Structured}}})
	if err != nil {
		panic(err)
	}
	defer b.Close(context.Background())

	event := cloudevents.Event{ID: "1", Source: "/shop", Type: "order.placed"}
	m, err := ferry.NewMessage(ctx, b, "orders", Order{1}) // binary: the order is the body, the attributes are headers
	if err != nil {
		panic(err)
	}
	if m.Headers, err = event.Headers(); err != nil {
		panic(err)
	}
	if _, err := b.Publish(ctx, m); err != nil {
		panic(err)
	}
	event.ID, event.Data = "2", []byte(`{"id":2}`) // structured: all of it is the body
	if _, err := ferry.Publish(ctx, b, "orders", event, ferry.Codec(cloudevents.Structured)); err != nil {
		panic(err)
	}

	handled := 0
	w := worker.New(b, worker.Options{Concurrency: 1})
	worker.Handle(w, "orders", func(_ context.Context, m *ferry.Msg[Order]) error { // of either mode
		event, err := cloudevents.Parse(m.ContentType, m.Headers, m.Body)
		fmt.Println(event.Type, event.ID, m.Value.ID, err)
		if handled++; handled == 2 {
			stop()
		}
		return nil
	})
	if err := w.Run(ctx); err != nil {
		panic(err)
	}
	// Output:
	// order.placed 1 1 <nil>
	// order.placed 2 2 <nil>
}
