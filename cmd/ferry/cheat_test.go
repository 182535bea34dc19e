package main

import (
	"strings"
	"testing"
)

// TestCheatsParse: each command on the page exists, and takes its flags and arguments.
func TestCheatsParse(t *testing.T) {
	t.Parallel()
	for _, section := range cheats {
		for _, line := range section.lines {
			words := shellWords(line.command)
			c, rest, err := newRoot(process{env: func(string) (string, bool) { return "", false }}).Find(words[1:])
			if err != nil || words[0] != "ferry" || !c.HasParent() || !c.Runnable() || c.HasSubCommands() {
				t.Errorf("%s: %v", line.command, err)
				continue
			}
			if err := c.ParseFlags(rest); err != nil {
				t.Errorf("%s: %v", line.command, err)
				continue
			}
			if err := c.ValidateArgs(c.Flags().Args()); err != nil {
				t.Errorf("%s: %v", line.command, err)
			}
			if line.does == "" || len(line.command) > 66 {
				t.Errorf("%s does not fit on the page", line.command)
			}
		}
	}
}

// shellWords splits a line as a shell does that knows single quotes only.
func shellWords(line string) []string {
	var words []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			words = append(words, part)
			continue
		}
		words = append(words, strings.Fields(part)...)
	}
	return words
}
