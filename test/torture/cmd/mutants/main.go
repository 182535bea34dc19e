// Command mutants plants every known bug in turn, and fails unless each is caught by the check named for it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/ferrymq/ferry/test/torture/mutants"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	broker := flags.String("broker", "memory", "broker: "+strings.Join(mutants.Brokers(), ", "))
	only := flags.String("only", "", "names, with commas; default all")
	quick := flags.Bool("quick", false, "a few of every broker, whose checks have passed a moment ago without a bug")
	list := flags.Bool("list", false, "show what there is")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("what is %q? Everything is a flag: see -help", flags.Arg(0))
	}
	chosen, err := choose(*broker, *only)
	if err != nil {
		return err
	}
	sound := map[mutants.Check]error{}
	if *quick {
		chosen = mutants.Quick()
		for _, m := range chosen {
			sound[m.Check] = nil
		}
	}
	if *list {
		fmt.Print(table(chosen))
		return nil
	}
	root, err := mutants.Root(ctx)
	if err != nil {
		return err
	}
	return hunt(ctx, root, chosen, sound)
}

func choose(broker, names string) ([]mutants.Mutant, error) {
	all := mutants.For(broker)
	if all == nil {
		return nil, fmt.Errorf("no bugs to plant for broker %q; there are %s", broker, strings.Join(mutants.Brokers(), ", "))
	}
	if names == "" {
		return all, nil
	}
	var chosen []mutants.Mutant
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(all, func(m mutants.Mutant) bool { return m.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no mutant %q; there are:\n%s", name, table(all))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

func table(ms []mutants.Mutant) string {
	var b strings.Builder
	for _, m := range ms {
		fmt.Fprintf(&b, "  %-26s %s\n", m.Name, m.Bug)
	}
	return b.String()
}

// hunt makes sure that the checks not known to be sound pass without a bug, and then that each fails with its bug.
func hunt(ctx context.Context, root string, ms []mutants.Mutant, sound map[mutants.Check]error) error {
	start := time.Now()
	caught := 0
	for _, m := range ms {
		if _, known := sound[m.Check]; !known {
			sound[m.Check] = m.Check.Sound(ctx, root)
		}
		evidence, err := "", sound[m.Check]
		if err == nil {
			evidence, err = m.Hunt(ctx, root)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			fmt.Printf("NOT CAUGHT  %-26s %s\n            %v\n", m.Name, m.Bug, err)
			continue
		}
		caught++
		fmt.Printf("caught      %-26s %s\n            by %v: %s\n", m.Name, m.Bug, m.Check, evidence)
	}
	fmt.Printf("%d of %d caught in %v\n", caught, len(ms), time.Since(start).Round(time.Second))
	if caught < len(ms) {
		return errors.New("a check that a planted bug gets past is no check")
	}
	return nil
}
