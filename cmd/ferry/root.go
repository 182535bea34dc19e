package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// process is what a command gets from the operating system, so that tests can run commands without one.
type process struct {
	args []string
	env  func(name string) (string, bool)
	out  io.Writer
	err  io.Writer
}

// run executes one command line and returns its exit code: 0 for success, 1 for a failure, 2 for wrong usage.
func run(ctx context.Context, p process) int {
	ctx, stop := interruptible(ctx)
	defer stop()
	root := newRoot(p)
	root.SetArgs(p.args)
	root.SetOut(p.out)
	root.SetErr(p.err)
	command, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	return report(p.err, command, err)
}

const rootLong = `Ferry (摆渡) is a message queue for Go: the same program runs on a broker inside its own
process, on Redis, on Redis Streams and on Kafka. Today the broker in memory is built.

Every flag can also be set in the environment: FERRY_BROKER for --broker, FERRY_RATE for
--rate and so on. FERRY_BROKER_FILE names a file to read the value from, for URLs with
passwords. NO_COLOR turns colours off.

Exit codes: 0 success, 1 failure, 2 wrong usage.`

const rootExample = `  ferry dev                                     a broker with demo traffic, nothing else needed
  ferry dev --duration 10s                      the same, for ten seconds
  ferry bench --messages 1000000 --batch 100    how fast is it here?
  ferry help bench                              what a command can do`

func newRoot(p process) *cobra.Command {
	root := &cobra.Command{
		Use:           "ferry",
		Short:         "Run, measure and look into Ferry message brokers",
		Long:          rootLong,
		Example:       rootExample,
		SilenceErrors: true,
		SilenceUsage:  true,

		SuggestionsMinimumDistance: 2,

		Args: cobra.ArbitraryArgs, // RunE tells what is wrong with them
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return c.Help()
			}
			return unknownCommand(c, args[0])
		},
		PersistentPreRunE: func(c *cobra.Command, _ []string) error { return setFromEnvironment(c.Flags(), p.env) },
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usage(err.Error(), "see '"+c.CommandPath()+" --help'")
	})
	root.AddCommand(newDev(p), newBench(p), newVersion(p))
	return root
}

func unknownCommand(root *cobra.Command, name string) error {
	hint := "see 'ferry --help'"
	if near := root.SuggestionsFor(name); len(near) > 0 {
		hint = "did you mean 'ferry " + strings.Join(near, "' or 'ferry ") + "'?"
	}
	return usage(fmt.Sprintf("unknown command %q", printable(name)), hint)
}

// noArgs refuses what stands behind a command's flags.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usage(fmt.Sprintf("%s takes no argument %q", c.CommandPath(), printable(args[0])), "see '"+c.CommandPath()+" --help'")
}
