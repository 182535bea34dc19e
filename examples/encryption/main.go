// Command encryption publishes bodies that are compressed and encrypted on their way, rotates the key, and brings back
// a message whose key was missing.
package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log"
	"log/slog"
	"os"
	"strings"
	"sync"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/codec"
	"github.com/ferrymq/ferry/codec/compress"
	"github.com/ferrymq/ferry/codec/encrypt"
	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/worker"
)

// finding is what nobody but the handler is to read.
type finding struct{ Patient, Text string }

func main() {
	ctx := context.Background()
	// In a program of yours: encrypt.KeysFromEnv("FERRY_ENCRYPTION_KEYS").
	first, second := newKey("2026-01"), newKey("2026-02")
	encrypted := must(encrypt.New(encrypt.Options{Keys: encrypt.KeyRing{Active: first}}))
	smaller := must(compress.New(compress.Options{}))
	settled := make(chan ferry.Outcome)
	broker := must(open.URL(ctx, cmp.Or(os.Getenv("FERRY_BROKER"), "memory://"), ferry.Options{
		Filters: []codec.Filter{smaller, encrypted}, // in this order: what is encrypted does not become smaller
		Hooks:   ferry.Hooks{Settled: func(_ context.Context, e ferry.Event) { settled <- e.Outcome }},
	}))
	defer broker.Close(ctx)

	long := finding{"ann", strings.Repeat("nothing to be found, ", 100)}
	receipt := must(ferry.Publish(ctx, broker, "findings", long, ferry.Key("ward 1")))
	stored := must(broker.Driver().Get(ctx, ferry.Target{Topic: "findings", ID: receipt.ID}))[0]
	fmt.Println("the broker has:", stored.Headers[ferry.EncodingHeader], "readable:",
		bytes.Contains(stored.Body, []byte("ann")), "smaller:", len(stored.Body) < 500)

	check(encrypted.Rotate(encrypt.KeyRing{Active: second, Old: []encrypt.Key{first}}))
	must(ferry.Publish(ctx, broker, "findings", finding{"ben", "a cold"}, ferry.Key("ward 1"))) // in order
	handle(broker, settled, 2, "with both keys")

	must(ferry.Publish(ctx, broker, "findings", finding{"cem", "a cough"}))
	check(encrypted.Rotate(encrypt.KeyRing{Active: first})) // a consumer that was forgotten
	handle(broker, settled, 1, "without the new key")

	check(encrypted.Rotate(encrypt.KeyRing{Active: second, Old: []encrypt.Key{first}}))
	letters := must(deadletter.New(broker))
	report := must(letters.Replay(ctx, deadletter.ReplayOptions{Selection: deadletter.Selection{Topic: "findings"}}))
	fmt.Println("replayed:", report.Done)
	handle(broker, settled, 1, "with it again")
}

// handle runs a worker until it has settled so many messages.
func handle(b *ferry.Broker, settled <-chan ferry.Outcome, messages int, when string) {
	ctx, stop := context.WithCancel(context.Background())
	w := worker.New(b, worker.Options{Concurrency: 1, Logger: slog.New(slog.DiscardHandler)})
	worker.Handle(w, "findings", func(_ context.Context, m *ferry.Msg[finding]) error {
		fmt.Printf("%s: %s has %.7s\n", when, m.Value.Patient, m.Value.Text)
		return nil
	})
	var running sync.WaitGroup
	running.Go(func() { check(w.Run(ctx)) })
	for range messages {
		if outcome := <-settled; outcome != ferry.OutcomeAck {
			fmt.Printf("%s: %s\n", when, outcome)
		}
	}
	stop()
	running.Wait()
}

func newKey(id string) encrypt.Key {
	k := encrypt.Key{ID: id, Secret: make([]byte, encrypt.SecretSize)}
	_, err := rand.Read(k.Secret)
	check(err)
	return k
}

func must[T any](v T, err error) T {
	check(err)
	return v
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
