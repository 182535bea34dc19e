package main

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry"
)

// Exit codes. Scripts rely on them.
const (
	exitOK       = 0
	exitFailure  = 1
	exitUsage    = 2 // also input that is wrong
	exitNotFound = 3 // no such topic, group or message
)

// usageError is a mistake in the command line or the environment.
type usageError struct{ text, hint string }

func (e *usageError) Error() string { return e.text }

func usage(text, hint string) error { return &usageError{text: text, hint: hint} }

// failure is an error of a command itself, with its hint.
func failure(text, hint string) error { return &ferry.Error{Kind: errFailed, Text: text, Hint: hint} }

var errFailed = errors.New("failed")

// problem is what a command failed with. Its JSON form is stable, and printed where --output asks for JSON.
type problem struct {
	Errors []string `json:"errors"`
	Hint   string   `json:"hint"`
	Code   int      `json:"exit_code"`
}

// report prints an error with its hint as the last line, or as JSON, and returns the exit code.
func (p process) report(c *cobra.Command, err error) int {
	found := problemOf(c, err)
	if p.asksForJSON(c) {
		_ = writeJSON(p.err, found, "")
		return found.Code
	}
	for _, text := range found.Errors {
		p.notef("error: %s", text)
	}
	p.notef("hint: %s", found.Hint)
	return found.Code
}

// asksForJSON tells whether the command line or the environment asks for JSON, also where neither was read to the end:
// a flag before --output may be what is wrong.
func (p process) asksForJSON(c *cobra.Command) bool {
	if f := c.Flags().Lookup("output"); f != nil && isJSON(f.Value.String()) {
		return true
	}
	format, _ := p.env(variableOf("output"))
	for i, arg := range p.args {
		if arg == "--" {
			break
		}
		if value, ok := strings.CutPrefix(arg, "--output="); ok {
			format = value
		} else if arg == "--output" && i+1 < len(p.args) {
			format = p.args[i+1]
		}
	}
	return isJSON(format)
}

func isJSON(format string) bool { return format == formatJSON || format == formatNDJSON }

func problemOf(c *cobra.Command, err error) problem {
	var wrong *usageError
	if errors.As(err, &wrong) {
		return problem{Errors: []string{wrong.text}, Hint: wrong.hint, Code: exitUsage}
	}
	var p problem
	for _, one := range joined(err) {
		p.Code = worse(p.Code, codeOf(one))
		text, hint := explain(one)
		p.Hint = cmp.Or(p.Hint, hint)
		p.Errors = append(p.Errors, text)
	}
	p.Hint = cmp.Or(p.Hint, seeHelp(c))
	return p
}

func codeOf(err error) int {
	switch {
	case errors.Is(err, ferry.ErrInvalid):
		return exitUsage
	case errors.Is(err, ferry.ErrNotFound):
		return exitNotFound
	}
	return exitFailure
}

// worse returns the code of two errors together: their own if they agree.
func worse(a, b int) int {
	if a == b || a == exitOK {
		return b
	}
	return exitFailure
}

// joined returns the errors that errors.Join made one.
func joined(err error) []error {
	switch e := err.(type) { //nolint:errorlint // what is wrapped stays together
	case *ferry.Error: // has a kind and a cause, which are no errors beside it
		return []error{err}
	case interface{ Unwrap() []error }:
		var all []error
		for _, one := range e.Unwrap() {
			all = append(all, joined(one)...)
		}
		return all
	}
	return []error{err}
}

// explain returns what happened without the hints that our errors carry in their text, and the outermost hint.
func explain(err error) (text, hint string) {
	text = err.Error()
	var ours *ferry.Error
	if errors.Is(err, context.Canceled) && !errors.As(err, &ours) {
		return "interrupted", "run it again when you like"
	}
	for errors.As(err, &ours) {
		text = strings.Replace(text, " (hint: "+ours.Hint+")", "", 1)
		text = strings.Replace(text, "ferry: ", "", 1)
		hint = cmp.Or(hint, ours.Hint)
		if err = ours.Cause; err == nil {
			break
		}
	}
	return text, hint
}
