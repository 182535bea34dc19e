package main

import (
	"context"
	"fmt"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/monitor"
)

const topLong = `Shows every group of every topic, live: what is ready, in flight, waiting, delayed and dead, how fast
messages come and go, how long the oldest has waited, and how many workers there are. It only looks.

Keys: s sorts by the next column, S by the one before, / filters by name, space stops and goes on, q ends.`

// topOptions are the flags of ferry top.
type topOptions struct{ every time.Duration }

func newTop(p process) *cobra.Command {
	var o topOptions
	c := &cobra.Command{Use: "top [TOPIC...]", Short: "Watch topics, rates, lag and workers, live", Long: topLong,
		Example: "  ferry top\n  ferry top orders mails --every 5s"}
	r := newRemote(p, c)
	c.Flags().DurationVar(&o.every, "every", time.Second, "time between two looks")
	c.RunE = func(c *cobra.Command, args []string) error {
		if o.every < 100*time.Millisecond || o.every > time.Hour {
			return usage(fmt.Sprintf("--every %v is out of range", o.every), "use 100ms to 1h")
		}
		if r.format != formatTable {
			return usage("ferry top has no --output "+r.format, "use 'ferry health --output json' in scripts")
		}
		if !newTerminal(p).live || !isTerminal(p.in) {
			return usage("ferry top needs a terminal", "use 'ferry health --output json' in scripts")
		}
		return r.with(c.Context(), func(s session) error { return s.top(c.Context(), args, o.every) })
	}
	return c
}

// top looks again and again until somebody ends it.
func (s session) top(ctx context.Context, topics []string, every time.Duration) error {
	collector, err := monitor.NewCollector(s.broker, monitor.CollectorOptions{Options: monitor.Options{Topics: topics},
		Processes: cluster.Processes})
	if err != nil {
		return err
	}
	m := topModel{broker: brokerName(s.broker), every: every,
		look: func() monitor.Figures { return collector.Collect(ctx) }}
	_, err = tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(s.in), tea.WithOutput(s.out),
		tea.WithEnvironment(os.Environ())).Run()
	if ctx.Err() != nil {
		return nil
	}
	return err
}
