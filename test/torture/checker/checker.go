// Package checker judges the histories of a torture run. It is a pure function: the same histories, the same verdict.
package checker

import (
	"errors"

	"github.com/ferrymq/ferry/test/torture/history"
)

// ErrNoRun means that the histories do not say what the run promised.
var ErrNoRun = errors.New(
	`no "run" event in the histories: they are not of a torture run, or not all of them are there`)

// Check compares what happened with what was promised. The events are in order of time, see history.Read.
func Check(events []history.Event) (*Report, error) {
	l := read(events)
	if l.run == nil {
		return nil, ErrNoRun
	}
	r := newReport(l.run)
	l.splitCopies(r)
	for _, check := range []func(*ledger, *Report){
		checkLost,
		checkContent,
		checkDuplicates,
		checkOrder,
		checkEarly,
		checkExpired,
		checkAttempts,
		checkDeliveries,
		checkLeases,
		checkStaleSettles,
		checkRedelivery,
		checkListing,
		checkCounters,
		checkRecovery,
		checkProblems,
	} {
		check(l, r)
	}
	r.finish(l)
	return r, nil
}
