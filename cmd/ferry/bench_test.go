package main

import (
	"context"
	"testing"

	"github.com/ferrymq/ferry"
)

func TestBenchMeasuresEveryMessage(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]benchOptions{
		"one":                        {messages: 1, size: benchHeader, callers: 1, batch: 1, concurrency: 1},
		"singles":                    {messages: 500, size: 128, callers: 4, batch: 1, concurrency: 8},
		"batches":                    {messages: 501, size: 32, callers: 3, batch: 100, concurrency: 8, keys: 10},
		"more callers than messages": {messages: 2, size: 32, callers: 50, batch: 7, concurrency: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := openBroker(t.Context(), "memory", ferry.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = b.Close(context.Background()) }()
			res, err := newBenchRun(o, b).measure(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if res.PerSecond <= 0 || res.Handle.P50 <= 0 || res.Publish.P50 <= 0 || res.Handle.Max < res.Handle.P50 {
				t.Errorf("the result makes no sense: %+v", res)
			}
			topics, err := b.Driver().Topics(t.Context())
			if err != nil || len(topics) != 0 {
				t.Errorf("it leaves %v, %v", topics, err)
			}
		})
	}
}

func TestBenchIsInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	b, err := openBroker(ctx, "memory",
		ferry.Options{Hooks: ferry.Hooks{Published: func(context.Context, ferry.Event) { cancel() }}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close(context.Background()) }()
	o := benchOptions{messages: 1_000_000, size: 128, callers: 2, batch: 1, concurrency: 2}
	if res, err := newBenchRun(o, b).measure(ctx); err == nil {
		t.Errorf("got %+v, want an error", res)
	}
}

func TestGrouped(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 123456: "123,456", 1234567: "1,234,567"} {
		if got := grouped(n); got != want {
			t.Errorf("grouped(%d) = %s, want %s", n, got, want)
		}
	}
}
