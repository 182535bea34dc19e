// Command admin measures the server of operators: the admin API on a topic with a million messages beside asynqmon,
// viewers of live figures, the start and the rest of a server, and what a flood of requests costs publishers. Run it in
// the directory bench: go run ./cmd/admin. It prints its figures as a table in Markdown.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/ferrymq/ferry/bench/meter"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "admin:", err)
		os.Exit(1)
	}
}

// sizes say how much is measured.
type sizes struct {
	messages int // of the topic
	requests int // of each kind
	viewers  int
	watch    time.Duration // for which viewers stay, and a server rests
	publish  time.Duration // of each round with and without a flood
}

// row is one figure.
type row struct{ what, figure, wanted string }

func run(ctx context.Context) error {
	var s sizes
	flag.IntVar(&s.messages, "messages", 1_000_000, "messages of the topic")
	flag.IntVar(&s.requests, "requests", 200, "requests of each kind")
	flag.IntVar(&s.viewers, "viewers", 1000, "viewers of live figures")
	flag.DurationVar(&s.watch, "watch", 30*time.Second, "how long viewers stay, and a server rests")
	flag.DurationVar(&s.publish, "publish", 5*time.Second, "how long each round of publishing takes")
	only := flag.String("only", "", "only one of disk, redis, server and flood")
	flag.Parse()
	fmt.Printf("%s, %v, load %s\n\n", time.Now().UTC().Format(time.DateTime), meter.ThisMachine(), loadAverage())
	fmt.Println("| what | figure | wanted |\n|---|---|---|")
	for _, part := range []struct {
		name    string
		measure func(context.Context, sizes) ([]row, error)
	}{{"disk", measureDisk}, {"redis", measureRedis}, {"server", measureServer}, {"flood", measureFlood}} {
		if *only != "" && *only != part.name {
			continue
		}
		rows, err := part.measure(ctx, s)
		for _, r := range rows {
			fmt.Printf("| %s | %s | %s |\n", r.what, r.figure, r.wanted)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func loadAverage() string {
	f, err := os.Open("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	defer func() { _ = f.Close() }()
	text, _ := io.ReadAll(f)
	return string(text[:min(len(text), 14)])
}
