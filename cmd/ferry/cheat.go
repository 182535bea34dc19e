package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// cheat is a command that people need often, and what it does.
type cheat struct{ command, does string }

// cheats are the page of ferry cheat. A test parses every command on it.
var cheats = []struct {
	title string
	lines []cheat
}{
	{"Begin", []cheat{
		{"ferry dev", "a broker with demo traffic and a server"},
		{"ferry init", "ferry.yaml, a compose file and a worker that compiles"},
		{"ferry ctx set prod --broker redis://localhost:6379", "so that the commands below need no --broker"},
		{"ferry doctor", "is the broker set up well?"},
	}},
	{"Look", []cheat{
		{"ferry top", "topics, rates, lag and workers, live"},
		{"ferry health", "is all well, and if not, why?"},
		{"ferry topic ls", "what is there, and is it moving?"},
		{"ferry topic show orders", "one topic with its groups"},
		{"ferry msg ls orders --limit 20", "messages, without taking them"},
		{"ferry msg show orders ID", "one message as every group sees it"},
		{"ferry worker ls", "which processes consume, and what do they run?"},
		{"ferry stuck", "what waits too long"},
	}},
	{"Send and receive", []cheat{
		{`ferry pub orders '{"id":1}' --key ann`, "publish a message"},
		{"ferry pub orders later --delay 10m", "not before ten minutes have passed"},
		{"ferry sub orders --count 3", "look at messages, and give them back"},
	}},
	{"Dead letters", []cheat{
		{"ferry dlq ls --group-by error", "what failed for good, and why"},
		{"ferry dlq show orders ID", "one of them, with its error"},
		{`ferry dlq retry orders --where 'reason == "timeout"' --dry-run`, "how many would be replayed?"},
		{"ferry dlq retry orders --all", "replay them"},
		{"ferry dlq export orders", "write them to standard output, as NDJSON"},
	}},
	{"Steer", []cheat{
		{"ferry topic pause orders", "stop deliveries"},
		{"ferry topic resume orders", "let them go on"},
		{"ferry limit ls --store redis://localhost:6379", "whom do rate limits keep out?"},
		{"ferry limit unblock user 4711 --reason sorry", "let one in again"},
		{"ferry operation ls", "long work, and how far it is"},
	}},
	{"Serve", []cheat{
		{"ferry user set ann --role admin --password-stdin", "who may log in"},
		{"ferry token create ci --scope publish", "a token for a program"},
		{"ferry serve --config ferry.yaml", "the server: API, metrics, gateway"},
		{"ferry actions ls", "who did what?"},
	}},
}

func newCheat(p process) *cobra.Command {
	return &cobra.Command{Use: "cheat", Short: "Show the most useful commands on one page", Example: "  ferry cheat",
		Args: asUsed,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(p.out, cheatPage())
			return err
		}}
}

func cheatPage() string {
	var b strings.Builder
	for i, section := range cheats {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "%s\n", section.title)
		for _, c := range section.lines {
			fmt.Fprintf(&b, "  %-66s %s\n", c.command, c.does)
		}
	}
	b.WriteString("\nEvery command explains itself with --help, and has --output table, json or ndjson where it lists.\n")
	return b.String()
}
