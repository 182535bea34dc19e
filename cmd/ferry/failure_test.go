package main

import (
	"context"
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
		{fmt.Errorf("message 2 of 3: %w", full), exitFailure, "error: message 2 of 3: topic orders is full\nhint: handle more\n"},
		{&ferry.Error{Text: "no", Cause: full}, exitFailure, "error: no: topic orders is full\nhint: handle more\n"},
		{errors.Join(errors.New("one"), full), exitFailure, "error: one\nerror: topic orders is full\nhint: handle more\n"},
		{usage("no such flag", "see help"), exitUsage, "error: no such flag\nhint: see help\n"},
		{&ferry.Error{Kind: ferry.ErrNotFound, Text: "no topic", Hint: "look"}, exitNotFound, "error: no topic\nhint: look\n"},
		{&ferry.Error{Kind: ferry.ErrInvalid, Text: "no name", Hint: "look"}, exitUsage, "error: no name\nhint: look\n"},
		{errors.Join(&ferry.Error{Kind: ferry.ErrNotFound, Text: "no topic", Hint: "look"}, full), exitFailure, "error: no topic\nerror: topic orders is full\nhint: look\n"},
		{fmt.Errorf("browse: %w", context.Canceled), exitFailure, "error: interrupted\nhint: run it again when you like\n"},
		{errors.New("disk on fire"), exitFailure, "error: disk on fire\nhint: see 'ferry --help'\n"},
		{errors.New("evil \x1b]0;title\a\nhint: rm -rf /"), exitFailure, "error: evil \\x1b]0;title\\a\\nhint: rm -rf /\nhint: see 'ferry --help'\n"},
	} {
		var out strings.Builder
		if code := report(&out, &cobra.Command{Use: "ferry"}, c.err); code != c.code {
			t.Errorf("%v: exit code %d, want %d", c.err, code, c.code)
		}
		if c.want != out.String() {
			t.Errorf("%v: printed %q, want %q", c.err, out.String(), c.want)
		}
	}
}
