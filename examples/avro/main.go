// Command avro lets two versions of a program share a topic: bodies are Avro, and a schema registry knows what each was
// written with.
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"os"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/sr/srfake"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/codec"
	"github.com/ferrymq/ferry/codec/avro"
	"github.com/ferrymq/ferry/codec/registry"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/worker"
)

// OrderV1 is what the shop wrote at first.
type OrderV1 struct {
	ID    int64 `avro:"id"`
	Total int32 `avro:"total"`
}

// Order has since then got another name for the total, which is no longer a whole number, and a currency.
type Order struct {
	ID       int64   `avro:"id" json:"id"`
	Sum      float64 `avro:"sum" json:"sum"`
	Currency string  `avro:"currency" json:"currency"`
}

const v1 = `{"type": "record", "name": "Order", "namespace": "shop", "fields": [
	{"name": "id", "type": "long"},
	{"name": "total", "type": "int"}]}`

const v2 = `{"type": "record", "name": "Order", "namespace": "shop", "fields": [
	{"name": "id", "type": "long"},
	{"name": "sum", "type": "double", "aliases": ["total"]},
	{"name": "currency", "type": "string", "default": "EUR"}]}`

const v3 = `{"type": "record", "name": "Order", "namespace": "shop", "fields": [
	{"name": "id", "type": "long"},
	{"name": "sum", "type": "double"},
	{"name": "currency", "type": "string"},
	{"name": "country", "type": "string"}]}`

func main() {
	fake := srfake.New() // a registry inside this process; in production it is somewhere else
	defer fake.Close()
	schemas, err := registry.New(registry.Options{URLs: []string{fake.URL()}, Register: true, Timeout: time.Minute})
	check(err)
	older, err := avro.New(schemas, avro.Of[OrderV1](v1))
	check(err)
	newer, err := avro.New(schemas, avro.Of[Order](v2))
	check(err)

	ctx, stop := context.WithCancel(context.Background())
	broker, err := open.URL(ctx, cmp.Or(os.Getenv("FERRY_BROKER"), "memory://"),
		ferry.Options{Codecs: []codec.Codec{newer, codec.JSON}})
	check(err)
	defer broker.Close(context.Background())

	// A program that has not been updated, one that has, and one that knows JSON alone.
	publish(ctx, broker, OrderV1{ID: 1, Total: 20}, ferry.Codec(older))
	check(newer.Check(ctx, "orders", Order{})) // before the first publish: may the new schema follow the old one?
	publish(ctx, broker, Order{ID: 2, Sum: 19.9, Currency: "CNY"})
	publish(ctx, broker, Order{ID: 3, Sum: 5, Currency: "USD"}, ferry.Codec(codec.JSON))

	var left sync.WaitGroup
	left.Add(3)
	w := worker.New(broker, worker.Options{})
	worker.Handle(w, "orders", func(_ context.Context, m *ferry.Msg[Order]) error {
		defer left.Done()
		fmt.Printf("order %d: %.2f %s, from %s\n", m.Value.ID, m.Value.Sum, m.Value.Currency, m.ContentType)
		return nil
	})
	var running sync.WaitGroup
	running.Go(func() { check(w.Run(ctx)) })
	left.Wait()
	stop()
	running.Wait()

	broken, err := avro.New(schemas, avro.Of[Order](v3))
	check(err)
	fmt.Println(broken.Check(context.Background(), "orders", Order{}))
}

func publish[T any](ctx context.Context, broker *ferry.Broker, order T, opts ...ferry.PublishOption) {
	_, err := ferry.Publish(ctx, broker, "orders", order, append(opts, ferry.Key("shop"))...)
	check(err)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
