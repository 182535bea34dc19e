package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/letterjson"
)

// store is one of the two places for what failed for good: their commands are alike.
type store struct {
	noun  string // "ferry NOUN"
	many  string // what is in it
	none  string // said when it is empty
	state driver.State
}

var (
	deadStore = store{noun: "dlq", many: "dead letters", none: "No dead letters. Messages land here when their handler " +
		"gave up.", state: driver.StateDead}
	badStore = store{noun: "parse-errors", many: "parse errors",
		none: "No parse errors: everything that was read could be decoded.", state: driver.StateInvalid}
)

const whereHelp = `A condition for --where is written as in
reason == "timeout" and attempts > 3 and key startsWith "user-". It may use ` + deadletter.FilterFields + `.
Texts know contains, startsWith, endsWith and matches; times date("2026-01-31"), and age duration("1h").`

// letterFilter selects letters by why they died, or by anything about them.
type letterFilter struct{ reason, text, where string }

func (l *letterFilter) flags(f *pflag.FlagSet, s store) {
	if s.state == driver.StateDead {
		f.StringVar(&l.reason, "reason", "", "only those that died for this reason, timeout or max_attempts for example")
		f.StringVar(&l.text, "error", "", "only those whose error contains this text")
		onlyOnCommandLine(f, "reason", "error")
	}
	f.StringVar(&l.where, "where", "", "only those that meet this condition, see above")
	onlyOnCommandLine(f, "where")
}

func (l letterFilter) empty() bool { return l == letterFilter{} }

// compile returns the filter, or nil for all. A mistake in --where is told with its column there.
func (l letterFilter) compile() (*deadletter.Filter, error) {
	if l.where != "" {
		if _, err := deadletter.ParseFilter(l.where); err != nil {
			return nil, err
		}
	}
	if l.empty() {
		return nil, nil
	}
	return deadletter.ParseFilter(l.condition())
}

// condition is all of it as one condition; empty for none.
func (l letterFilter) condition() string {
	var parts []string
	if l.where != "" {
		parts = append(parts, "("+l.where+")")
	}
	if l.reason != "" {
		parts = append(parts, "reason == "+strconv.Quote(l.reason))
	}
	if l.text != "" {
		parts = append(parts, "error contains "+strconv.Quote(l.text))
	}
	return strings.Join(parts, " and ")
}

// noteReason helps with a reason that is none of Ferry's own, if nothing was found for it.
func (s session) noteReason(reason string, found int) {
	own := []driver.Reason{driver.ReasonMaxAttempts, driver.ReasonMaxDeliveries, driver.ReasonFatal, driver.ReasonTimeout,
		driver.ReasonPanic, driver.ReasonExpired,
		driver.ReasonRateLimited, driver.ReasonKeyBlocked, driver.ReasonBreakerOpen, driver.ReasonQueueFull,
		driver.ReasonInvalidMessage, driver.ReasonDownstream,
		driver.ReasonOverload, driver.ReasonRejected}
	if found > 0 || reason == "" || slices.Contains(own, driver.Reason(reason)) {
		return
	}
	names := make([]string, len(own))
	for i, r := range own {
		names[i] = string(r)
	}
	s.notef("reason %q is none of Ferry's own, and nothing died for it; Ferry gives %s", reason, strings.Join(names, ", "))
}

// queue returns what works on letters.
func (s session) queue() (*deadletter.Queue, error) { return deadletter.New(s.broker) }

func viewLetter(l deadletter.Letter) entryView { return viewEntry(l.From, l.Entry) }

// nextRetry says in words when recovery brings a dead letter back, or that it does not.
func nextRetry(d *letterjson.Dead) string {
	switch deadletter.Plan(d.Recovery) {
	case deadletter.PlanRetry:
		return clock(d.NextRetryAt)
	case deadletter.PlanDeploy:
		return "next deploy"
	case deadletter.PlanGiveUp:
		return "given up"
	case deadletter.PlanReview:
		return "review"
	}
	return ""
}

// of names the topic of a selection for people.
func of(topic string) string {
	if topic == "" {
		return "all topics"
	}
	return "topic " + topic
}

// noteFaulty tells of letters that a condition cannot be asked of.
func (s session) noteFaulty(n int, fault error) {
	if n > 0 {
		s.notef("%d could not be asked, and were left out: %v", n, fault)
	}
}

// progressOf says how far a scan is.
func progressOf(scanned int, total int64, matches int) string {
	return fmt.Sprintf("scanned %s of about %s, %s matches", grouped(scanned), grouped(int(max(total, int64(scanned)))),
		grouped(matches))
}
