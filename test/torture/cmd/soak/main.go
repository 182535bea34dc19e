// Command soak runs load and faults for a long time, and fails if memory, goroutines, files or the broker grow.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/test/torture/rig"
	"github.com/ferrymq/ferry/test/torture/soak"
)

// weather is what happens all the time. Nothing is killed: what lives in this process could not be buried before the
// end.
const weather = `every 2s-4s term consumer any; every 2s-4s term producer any
	every 1s fail consumer any with 0.1 for 500ms; every 3s panic consumer any with 0.1 for 500ms
	every 5s-9s cut consumer any for 300ms; every 5s-9s cut producer any for 200ms
	every 4s lose-replies consumer any for 100ms`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "soak:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	o := rig.Options{Fault: rig.Fault{Name: "weather", Schedule: weather}}
	flags.StringVar(&o.Broker, "broker", "memory", "broker: "+strings.Join(rig.Brokers(), ", "))
	minutes := flags.Float64("minutes", 60, "how long")
	flags.IntVar(&o.Rate, "rate", 500, "messages per second")
	flags.Uint64Var(&o.Seed, "seed", 1, "seed of every random choice")
	page := flags.String("plot", "soak.html", "where to write the plot")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("what is %q? Everything is a flag: see -help", flags.Arg(0))
	case *minutes < 0.2 || o.Rate < 1:
		return errors.New("-minutes must be at least 0.2, and -rate positive")
	}
	if _, _, err := rig.FaultsFor(o.Broker); err != nil {
		return err
	}
	o.Load = time.Duration(*minutes * float64(time.Minute))
	return soakFor(ctx, o, *page)
}

func soakFor(ctx context.Context, o rig.Options, page string) error {
	var probes []soak.Probe
	err := rig.Endure(ctx, o, func(ctx context.Context, d driver.Driver) error {
		loading, cancel := context.WithTimeout(ctx, o.Load-o.Load/50) // the drain after it is no part of the trend
		defer cancel()
		probes = soak.Probes(d, rig.Topic)
		return soak.Sample(loading, probes, max(o.Load/600, 100*time.Millisecond))
	})
	var all []*soak.Series
	var growing []string
	warmUp := soak.WarmUp(o.Load)
	for i := range probes {
		s := &probes[i].Series
		t := s.Trend(warmUp)
		word := "steady"
		if s.Grows(t) {
			word = "GROWS"
			growing = append(growing, s.Name)
		}
		fmt.Printf("%-24s %-7s %8.2f %s after the warm-up, %+.2f ± %.2f per hour\n", s.Name, word, t.Start, s.Unit, t.PerHour,
			3*t.Error)
		all = append(all, s)
	}
	title := fmt.Sprintf("Soak of %s: %v at %d messages/s, seed %d", o.Broker, o.Load, o.Rate, o.Seed)
	err = errors.Join(err, os.WriteFile(page, []byte(soak.Page(title, all, warmUp)), 0o600))
	fmt.Printf("plot: %s\n", page)
	if len(growing) > 0 {
		err = errors.Join(err, fmt.Errorf("growing: %s", strings.Join(growing, ", ")))
	}
	return err
}
