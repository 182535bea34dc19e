package main

import (
	"cmp"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry/guard"
)

const breakerExample = `  export FERRY_STORE=redis://localhost:6379
  ferry breaker ls
  ferry breaker open billing --reason "maintenance until 14:00"
  ferry breaker close billing --reason "we know it works"
  ferry breaker auto billing --reason "done"`

const breakerLong = `See and force circuit breakers. Each process has breakers of its own; those with a Store
(guard.BreakerOptions.Store) report their state there as messages pass, and obey a forced state with the next message
that comes half a second after the change. Messages of an open breaker wait; they burn no attempts.

` + storeHelp

func newBreaker(p process) *cobra.Command {
	c := newNoun("breaker", "See and force circuit breakers", breakerExample, newBreakerList(p),
		newBreakerForce(p, "open", guard.StateOpen, "Let nothing pass, in every process"),
		newBreakerForce(p, "close", guard.StateClosed, "Let everything pass, in every process"),
		newBreakerForce(p, "auto", "", "Leave it to itself again"))
	c.Long = breakerLong
	return c
}

var breakerColumns = []column[guard.BreakerStatus]{
	{title: "breaker", width: 40, cell: func(b guard.BreakerStatus) any { return b.Name }},
	{title: "process", width: 32, cell: func(b guard.BreakerStatus) any { return cmp.Or(b.Instance, "(all)") }},
	{title: "state", cell: func(b guard.BreakerStatus) any {
		if b.Forced {
			return fmt.Sprintf("%s (forced)", b.State)
		}
		return b.State
	}},
	{title: "since", cell: func(b guard.BreakerStatus) any { return whenever(b.Since, instant(b.Since)) }},
	{title: "requests", number: true, cell: func(b guard.BreakerStatus) any { return b.Requests }},
	{title: "failures", number: true, cell: func(b guard.BreakerStatus) any { return b.Failures }},
	{title: "in a row", number: true, cell: func(b guard.BreakerStatus) any { return b.InARow }},
	{title: "reported", number: true,
		cell: func(b guard.BreakerStatus) any { return whenever(b.Seen, shortly(time.Since(b.Seen))+" ago") }},
}

// whenever returns text about a time, unless there is none: a breaker that is forced may not have been reported yet.
func whenever(t time.Time, text string) string {
	if t.IsZero() {
		return ""
	}
	return text
}

func newBreakerList(p process) *cobra.Command {
	c := &cobra.Command{Use: "ls", Short: "List the breakers that processes reported within the last hour, and those " +
		"that are forced", Example: "  ferry breaker ls"}
	d := newGuardCommand(p, c, false)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return d.with(c.Context(), func(a *guard.Admin) error {
			all, err := a.Breakers(c.Context())
			if err != nil {
				return err
			}
			return list(d.remote, breakerColumns, all, "No process has reported a breaker, and none is forced.")
		})
	}
	return c
}

func newBreakerForce(p process, verb string, state guard.State, short string) *cobra.Command {
	c := &cobra.Command{Use: verb + " BREAKER", Short: short, Example: breakerExample}
	d := newGuardCommand(p, c, true)
	c.RunE = func(c *cobra.Command, args []string) error {
		return d.with(c.Context(), func(a *guard.Admin) error {
			if err := a.ForceBreaker(c.Context(), args[0], state, d.reason); err != nil {
				return hintedReason(err, d.reason)
			}
			result := map[guard.State]string{guard.StateOpen: "forced open:", guard.StateClosed: "forced closed:",
				"": "left to itself:"}[state]
			return d.changed(guardChange{Result: result, Key: args[0]})
		})
	}
	return c
}
