package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry"
)

const benchLong = `Publishes messages, handles and acknowledges them all, and prints how long that took: the
throughput of the whole way, the latency of each publish call, and the latency from the
publish of a message to the start of its handler. It uses a topic of its own and removes it.

The latency to the handler includes the time in the queue: publishers that are faster than
the handlers make it grow. Lower --callers to see the latency of a system that keeps up.`

const benchExample = `  ferry bench
  ferry bench --messages 1000000 --batch 100
  ferry bench --callers 1 --messages 10000          one publisher, one message at a time
  ferry bench --keys 1000 --size 1024               in order per key, 1 KB bodies
  ferry bench --output json | jq .per_second`

// benchOptions are the flags of ferry bench.
type benchOptions struct {
	broker      string
	output      string
	messages    int
	size        int
	callers     int
	batch       int
	concurrency int
	keys        int
}

func newBench(p process) *cobra.Command {
	var o benchOptions
	c := &cobra.Command{
		Use:     "bench",
		Short:   "Measure publish → handle → acknowledge: throughput and latency",
		Long:    benchLong,
		Example: benchExample,
		Args:    asUsed,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			result, err := o.run(c.Context())
			if err != nil {
				return err
			}
			return result.print(p.out, o.output)
		},
	}
	f := c.Flags()
	brokerFlag(f, &o.broker)
	f.IntVar(&o.messages, "messages", 100_000, "how many messages, at most 10000000")
	f.IntVar(&o.size, "size", 128, "bytes of each body, at least 16")
	f.IntVar(&o.callers, "callers", 8, "publishers at the same time")
	f.IntVar(&o.batch, "batch", 1, "messages in each publish call")
	f.IntVar(&o.concurrency, "concurrency", 64, "handlers at the same time")
	f.IntVar(&o.keys, "keys", 0, "different keys, each handled in order; 0: no keys")
	f.StringVar(&o.output, "output", "table", "table or json")
	return c
}

func (o benchOptions) check() error {
	for _, f := range []struct {
		name               string
		value, least, most int
	}{
		{"messages", o.messages, 1, 10_000_000},
		{"size", o.size, benchHeader, 64 << 20},
		{"callers", o.callers, 1, 10_000},
		{"batch", o.batch, 1, 10_000},
		{"concurrency", o.concurrency, 1, 100_000},
		{"keys", o.keys, 0, 10_000_000},
	} {
		if f.value < f.least || f.value > f.most {
			return usage(fmt.Sprintf("--%s %d is out of range", f.name, f.value), fmt.Sprintf("use %d to %d", f.least, f.most))
		}
	}
	if o.output != "table" && o.output != "json" {
		return usage(fmt.Sprintf("--output %q does not exist", printable(o.output)), "use table or json")
	}
	return nil
}

// run opens the broker, measures, and closes it.
func (o benchOptions) run(ctx context.Context) (result *benchResult, err error) {
	broker, err := openBroker(ctx, o.broker, ferry.Options{Logger: quiet})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, broker.Close(context.WithoutCancel(ctx))) }()
	return newBenchRun(o, broker).measure(ctx)
}
