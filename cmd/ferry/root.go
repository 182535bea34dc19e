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
	in   io.Reader
	out  io.Writer
	err  io.Writer
	open opener
}

// notef tells something that is not the output itself. What it quotes cannot harm the terminal.
func (p process) notef(format string, args ...any) {
	_, _ = fmt.Fprintln(p.err, printable(fmt.Sprintf(format, args...)))
}

// sayf prints a line of output for people. What it quotes cannot harm the terminal.
func (p process) sayf(format string, args ...any) error {
	_, err := fmt.Fprintln(p.out, printable(fmt.Sprintf(format, args...)))
	return err
}

// run executes one command line and returns its exit code, one of those in failure.go.
func run(ctx context.Context, p process) int {
	ctx, stop := interruptible(ctx)
	defer stop()
	root := newRoot(p)
	root.SetArgs(p.args)
	command, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	return p.report(command, err)
}

const rootLong = `Ferry (摆渡) is a message queue for Go: the same program runs on a broker inside its own
process (in memory or in a directory), on Redis, on Redis Streams and on Kafka.

Flags can also be set in the environment: FERRY_BROKER for --broker, FERRY_RATE for --rate and
so on; not those that name one message or confirm a change (--id, --all, --yes, ...). A URL with
a password belongs in FERRY_BROKER, or in a file named by FERRY_BROKER_FILE that nobody else can
read: the command line is visible to others on the machine. FERRY_ENCRYPTION_KEYS, or the file that
FERRY_ENCRYPTION_KEYS_FILE names, has the keys of encrypted bodies: ID:SECRET, separated by commas;
the first encrypts what is published here. NO_COLOR turns colours off.

Exit codes: 0 success, 1 failure, 2 wrong usage or input, 3 not found.`

const rootExample = `  ferry dev                                     a broker with demo traffic, nothing else needed
  ferry dev --duration 10s                      the same, for ten seconds
  ferry bench --messages 1000000 --batch 100    how fast is it here?
  ferry help bench                              what a command can do
  ferry cheat                                   the most useful commands on one page

  export FERRY_BROKER=redis://localhost:6379    for the commands below
  ferry doctor                                  is the broker set up well?
  ferry pub orders '{"id":1,"name":"世界"}'       publish a message
  ferry sub orders --count 3                    look at messages, and give them back
  ferry topic ls                                what is there, and is it moving?
  ferry health                                  is all well, and if not, why?
  ferry worker ls                               which processes consume, and what do they run?
  ferry dlq ls --group-by error                 what failed for good, and why`

func newRoot(p process) *cobra.Command {
	root := &cobra.Command{
		Use:           "ferry",
		Short:         "Run, measure and look into Ferry message brokers",
		Long:          rootLong,
		Example:       rootExample,
		SilenceErrors: true,
		SilenceUsage:  true,

		Version:                    buildVersion(),
		SuggestionsMinimumDistance: 2,

		Args:              cobra.ArbitraryArgs, // RunE tells what is wrong with them
		RunE:              helpOrUnknown,
		PersistentPreRunE: func(c *cobra.Command, _ []string) error { return setFromEnvironment(c.Flags(), p.env) },
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(wrongFlag)
	root.AddCommand(
		newDev(p), newBench(p), newVersion(p),
		newPub(p), newSub(p), newTopic(p), newGroup(p), newMsg(p), newDLQ(p), newParseErrors(p), newWorker(p), newAudit(p),
		newDoctor(p), newHealth(p), newStuck(p), newTop(p), newBackup(p),
		newSchedule(p), newOperation(p), newNotify(p), newAlert(p), newTransaction(p), newSpool(p), newLimit(p),
		newBreaker(p), newWeCom(p),
		newServe(p), newConfig(p), newToken(p), newUser(p), newActions(p), newCtx(p), newInit(p), newCheat(p),
	)
	root.SetOut(p.out)
	root.SetErr(p.err)
	ownCommands(root)
	suggests(root)
	p.completes(root)
	return root
}

// newNoun returns a command that has others below it, "ferry topic" for example.
func newNoun(use, short, example string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Example: example, Args: cobra.ArbitraryArgs, RunE: helpOrUnknown,
		SuggestionsMinimumDistance: 2}
	c.AddCommand(commands...)
	return c
}

// helpOrUnknown runs a command that does nothing by itself.
func helpOrUnknown(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return c.Help()
	}
	hint := seeHelp(c)
	if near := meant(c, args[0]); len(near) > 0 {
		hint = "did you mean '" + c.CommandPath() + " " + strings.Join(near, "' or '"+c.CommandPath()+" ") + "'?"
	}
	return usage(fmt.Sprintf("unknown command %q", printable(args[0])), hint)
}

func seeHelp(c *cobra.Command) string { return "see '" + c.CommandPath() + " --help'" }
