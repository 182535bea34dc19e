// Command wecom measures customer service of WeCom on one node: how fast messages of the vendor are pulled and
// published, and how fast they are handled behind the guards. Run it in the directory bench: go run ./cmd/wecom. It
// starts a Kafka, unless -broker names another broker, and prints its figures as a table in Markdown.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/ferrymq/ferry/bench/meter"
	"github.com/ferrymq/ferry/bench/system/kafkaserver"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "wecom:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	url := flag.String("broker", "", "URL of an empty broker; default: a Kafka of its own")
	messages := flag.Int("messages", 100_000, "how many messages")
	flag.Parse()
	if *url == "" {
		stop, err := kafkaserver.Prepare()
		if err != nil {
			return err
		}
		defer func() { _ = stop() }()
		server, err := kafkaserver.Find()
		if err != nil {
			return err
		}
		*url = "kafka://" + server.Addr + "/?namespace=" + server.Name + ".&partitions=12"
	}
	fmt.Printf("%s, %v, load %s\n\n", time.Now().UTC().Format(time.DateTime), meter.ThisMachine(), loadAverage())
	f, err := measure(ctx, *url, *messages)
	if err != nil {
		return err
	}
	fmt.Println("| what | messages/s | wanted |\n|---|---|---|")
	fmt.Printf("| in: pulled from the vendor and published | %.0f | ≥ 10,000 |\n", f.in)
	fmt.Printf("| out: handled behind the guards | %.0f | ≥ 5,000 |\n", f.out)
	return nil
}

// loadAverage is what else the machine does.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return string(text[:min(len(text), 14)])
}
