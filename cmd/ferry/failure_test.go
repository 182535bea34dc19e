package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry"
)

func TestReport(t *testing.T) {
	t.Parallel()
	full := &ferry.Error{Kind: ferry.ErrFull, Text: "topic orders is full", Hint: "handle more"}
	for _, c := range []struct {
		err  error
		code int
		want string
	}{
		{full, exitFailure, "error: topic orders is full\nhint: handle more\n"},
		{fmt.Errorf("message 2 of 3: %w", full), exitFailure, "error: message 2 of 3: topic orders is full\nhint: handle " +
			"more\n"},
		{&ferry.Error{Text: "no", Cause: full}, exitFailure, "error: no: topic orders is full\nhint: handle more\n"},
		{errors.Join(errors.New("one"), full), exitFailure, "error: one\nerror: topic orders is full\nhint: handle more\n"},
		{usage("no such flag", "see help"), exitUsage, "error: no such flag\nhint: see help\n"},
		{&ferry.Error{Kind: ferry.ErrNotFound, Text: "no topic", Hint: "look"}, exitNotFound,
			"error: no topic\nhint: look\n"},
		{&ferry.Error{Kind: ferry.ErrInvalid, Text: "no name", Hint: "look"}, exitUsage, "error: no name\nhint: look\n"},
		{errors.Join(&ferry.Error{Kind: ferry.ErrNotFound, Text: "no topic", Hint: "look"}, full), exitFailure,
			"error: no topic\nerror: topic orders is full\nhint: look\n"},
		{fmt.Errorf("browse: %w", context.Canceled), exitFailure, "error: interrupted\nhint: run it again when you like\n"},
		{errors.New("disk on fire"), exitFailure, "error: disk on fire\nhint: see 'ferry --help'\n"},
		{errors.New("evil \x1b]0;title\a\nhint: rm -rf /"), exitFailure,
			"error: evil \\x1b]0;title\\a\\nhint: rm -rf /\nhint: see 'ferry --help'\n"},
	} {
		var out strings.Builder
		p := process{err: &out, env: func(string) (string, bool) { return "", false }}
		if code := p.report(&cobra.Command{Use: "ferry"}, c.err); code != c.code {
			t.Errorf("%v: exit code %d, want %d", c.err, code, c.code)
		}
		if c.want != out.String() {
			t.Errorf("%v: printed %q, want %q", c.err, out.String(), c.want)
		}
	}
}

// An error is JSON where JSON is asked for, also behind what could not be read.
func TestAnErrorBeforeOutputIsReadIsJSONToo(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for line, want := range map[string]string{
		"topic show --nope --output json":   "unknown flag: --nope",
		"topic show --nope --output=json":   "unknown flag: --nope",
		"topic show --output json --nope":   "unknown flag: --nope",
		"topic show --output ndjson":        "ferry topic show: TOPIC is missing",
		"topicc --output json":              `unknown command "topicc"`,
		"topic shwo orders --output json":   `unknown command "shwo"`,
		"topic ls extra more --output json": `ferry topic ls takes no argument "extra"`,
	} {
		d.isProblem(want, strings.Fields(line)...)
	}
	d.fails(exitUsage, "unknown flag: --nope", "topic", "show", "--nope", "--", "--output", "json")
	d.env["FERRY_OUTPUT"] = "json"
	d.isProblem("unknown flag: --nope", "topic", "show", "--nope")
	d.isProblem("ferry topic show: TOPIC is missing", "topic", "show")
	d.fails(exitUsage, "unknown flag: --nope", "topic", "show", "--nope", "--output", "table")
}

// isProblem runs a command line that must fail as wrong usage, with this error in JSON.
func (d *desk) isProblem(want string, args ...string) {
	d.Helper()
	r := d.run(args...)
	var p problem
	if err := json.Unmarshal([]byte(r.err), &p); err != nil {
		d.Errorf("ferry %s: %v\n%s", strings.Join(args, " "), err, r.err)
		return
	}
	if r.code != exitUsage || p.Code != exitUsage || len(p.Errors) != 1 || p.Errors[0] != want || p.Hint == "" {
		d.Errorf("ferry %s: exit code %d and %+v, want %q", strings.Join(args, " "), r.code, p, want)
	}
}
