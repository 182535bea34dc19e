package main

import (
	"strings"
	"testing"
)

// A mistyped command is what is wrong, whatever flags follow it.
func TestAMistypedCommandIsNotBlamedOnItsFlags(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, c := range []struct{ line, word, hint string }{
		{"topic delete nope --broker test://x", "delete", "did you mean 'ferry topic rm'?"},
		{"group remove orders g --broker test://x", "remove", "did you mean 'ferry group rm'?"},
		{"msg get orders 0-1 --raw", "get", "did you mean 'ferry msg show'?"},
		{"dlq patch orders 0-1 --body x", "patch", "did you mean 'ferry dlq edit'?"},
		{"parse-errors mend orders 0-1 --body=x", "mend", "did you mean 'ferry parse-errors requeue'?"},
		{"limit status user 7 --store redis://x", "status", "did you mean 'ferry limit show'?"},
		{"limit blocked --store redis://x", "blocked", "did you mean 'ferry limit ls'?"},
		{"schedule create a @daily jobs --zone UTC", "create", "did you mean 'ferry schedule put'?"},
		{"schedule list --broker test://x", "list", "did you mean 'ferry schedule ls'?"},
		{"worker rm one --broker test://x", "rm", "see 'ferry worker --help'"},
		{"topicc ls --limit 3", "topicc", "did you mean 'ferry topic'?"},
		{"publish orders x --key k", "publish", "did you mean 'ferry pub'?"},
	} {
		r := d.fails(exitUsage, "error: unknown command \""+c.word+"\"\n", strings.Fields(c.line)...)
		d.has(r.err, "hint: "+c.hint+"\n")
	}
	d.fails(exitUsage, "unknown flag: --nope", "topic", "--nope")
}
