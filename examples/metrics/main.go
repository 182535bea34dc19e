// Command metrics serves Prometheus metrics of a worker and its broker, and shows some of them.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/monitor"
	"github.com/ferrymq/ferry/telemetry/prom"
	"github.com/ferrymq/ferry/worker"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	metrics, err := prom.New(prom.Options{Age: time.Millisecond}) // every scrape asks the broker
	if err != nil {
		return err
	}
	broker, err := memory.Open(ctx, memory.Options{Broker: ferry.Options{
		Hooks:  metrics.Hooks(),
		Logger: slog.New(slog.DiscardHandler), // one order fails on purpose
	}})
	if err != nil {
		return err
	}
	defer broker.Close(context.WithoutCancel(ctx))

	w := worker.New(broker, worker.Options{MaxAttempts: 2, Retry: ferry.Delays(10 * time.Millisecond)})
	worker.Handle(w, "orders", func(_ context.Context, m *ferry.Msg[int]) error {
		if m.Value == 3 {
			return errors.New("order 3 cannot be billed")
		}
		return nil
	}, worker.Group("billing"))
	collector, err := monitor.NewCollector(broker,
		monitor.CollectorOptions{Options: monitor.Options{Workers: []*worker.Worker{w}}})
	if err != nil {
		return err
	}
	if err := metrics.Watch(prom.Sources{Workers: []*worker.Worker{w}, Collector: collector}); err != nil {
		return err
	}
	server := httptest.NewServer(metrics.Handler()) // in a program of yours: http.Handle("/metrics", metrics.Handler())
	defer server.Close()

	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(running) }()
	<-w.Ready() // its group gets what is published from now on
	for order := range 5 {
		if _, err := ferry.Publish(ctx, broker, "orders", order+1); err != nil {
			stop()
			return err
		}
	}
	lines, err := waitFor(ctx, server.URL,
		`ferry_group_messages_total{broker="default",event="died",group="billing",topic="orders"} 1`,
		`ferry_group_messages_total{broker="default",event="acked",group="billing",topic="orders"} 4`)
	stop()
	if err := errors.Join(err, <-ended); err != nil {
		return err
	}
	for _, line := range lines {
		if shown(line) {
			fmt.Println(line)
		}
	}
	return nil
}

// waitFor scrapes until there are two lines.
func waitFor(ctx context.Context, url, one, other string) ([]string, error) {
	for range 500 {
		answer, err := http.Get(url)
		if err != nil {
			return nil, err
		}
		var lines []string
		for s := bufio.NewScanner(answer.Body); s.Scan(); {
			lines = append(lines, s.Text())
		}
		if err := answer.Body.Close(); err != nil {
			return nil, err
		}
		if slices.Contains(lines, one) && slices.Contains(lines, other) {
			return lines, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil, fmt.Errorf("%s and %s never came", one, other)
}

func shown(line string) bool {
	for _, name := range []string{"ferry_messages_published_total{", "ferry_messages_processed_total{",
		"ferry_dead_letters_total{", `ferry_topic_messages{broker="default",group="billing"`, "ferry_up{"} {
		if strings.HasPrefix(line, name) {
			return true
		}
	}
	return false
}
