package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write docs/cli.md from the commands")

// docs/cli.md is made from the commands themselves: go test ./cmd/ferry -run TestReference -update
func TestReference(t *testing.T) {
	t.Parallel()
	file := filepath.Join(repository, "docs", "cli.md")
	want := reference()
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("docs/cli.md is not what the commands say; run 'make generate' (-commands +file):\n%s", diff)
	}
}

// reference returns the page.
func reference() string {
	root := newRoot(process{env: func(string) (string, bool) { return "", false }})
	var b strings.Builder
	fmt.Fprintf(&b, "# The command `ferry`\n\nMade from the commands by `make generate`. `ferry help COMMAND` says the "+
		"same.\n\n%s\n", fenced(root.Long))
	describeCommands(&b, root)
	return b.String()
}

func describeCommands(b *strings.Builder, c *cobra.Command) {
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() || sub.Name() == "help" || sub.Name() == "completion" {
			continue
		}
		fmt.Fprintf(b, "\n%s %s\n\n%s.\n", strings.Repeat("#", 1+strings.Count(sub.CommandPath(), " ")), sub.CommandPath(),
			strings.TrimSuffix(sub.Short, "."))
		if sub.Runnable() && !sub.HasAvailableSubCommands() {
			describeCommand(b, sub)
		} else if sub.Long != "" {
			fmt.Fprintf(b, "\n%s\n", fenced(sub.Long))
		}
		describeCommands(b, sub)
	}
}

func describeCommand(b *strings.Builder, c *cobra.Command) {
	fmt.Fprintf(b, "\n%s\n", fenced(c.UseLine()))
	if len(c.Aliases) > 0 {
		fmt.Fprintf(b, "\nAlso: `%s`\n", strings.Join(c.Aliases, "`, `"))
	}
	if c.Long != "" {
		fmt.Fprintf(b, "\n%s\n", fenced(c.Long))
	}
	if c.Example != "" {
		fmt.Fprintf(b, "\n%s\n", fenced(c.Example))
	}
	describeFlags(b, c)
}

func describeFlags(b *strings.Builder, c *cobra.Command) {
	rows := ""
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		value := f.DefValue
		if value == "" || value == "false" || value == "0" || value == "0s" || value == "[]" {
			value = ""
		} else {
			value = "`" + value + "`"
		}
		rows += fmt.Sprintf("| `--%s` | %s | %s | %s |\n", f.Name, f.Value.Type(), value,
			strings.ReplaceAll(f.Usage, "|", "\\|"))
	})
	if rows != "" {
		fmt.Fprintf(b, "\n| flag | takes | default | |\n|---|---|---|---|\n%s", rows)
	}
}

// fenced returns text that is shown as it is.
func fenced(text string) string { return "```\n" + strings.Trim(text, "\n") + "\n```" }
