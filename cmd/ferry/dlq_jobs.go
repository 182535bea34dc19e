package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/jsontime"
	"github.com/ferrymq/ferry/operation"
	"github.com/ferrymq/ferry/operation/kinds"
)

const jobsLong = `Jobs are operations on dead letters and parse errors that lie in the broker (--all --background):
'ferry operation' has all of them, and more commands. Whoever runs 'ferry dlq jobs run', or a program with an
operation.Worker, does them.`

// newJobs are the commands of operations, under the name that dead letters had for them first.
func newJobs(p process) *cobra.Command {
	list, run, cancel := newOperationList(p, "letters."), newOperationRun(p), newOperationCancel(p)
	list.Example, run.Example, cancel.Example = "  ferry dlq jobs ls",
		"  ferry dlq jobs run\n  ferry dlq jobs run --forever", "  ferry dlq jobs cancel 1JCV8M2QK7TZA4"
	list.Long, run.Long = jobsLong, jobsLong
	c := newNoun("jobs", "List, run and cancel operations on dead letters",
		"  ferry dlq jobs ls\n  ferry dlq jobs run\n  ferry dlq jobs cancel 1JCV8M2QK7TZA4", list, run, cancel)
	c.Long = jobsLong
	return c
}

// letters is the selection of a command as an operation keeps it.
func (b bulk) letters(topic string) kinds.Letters {
	return lettersOf(b.store, topic, b.group, b.filter)
}

func lettersOf(st store, topic, group string, filter letterFilter) kinds.Letters {
	l := kinds.Letters{Topic: topic, Group: group, Where: filter.condition()}
	if st.state != driver.StateDead {
		l.State = st.state
	}
	return l
}

// request is a replay as an operation keeps it.
func (r replayFlags) request(topic string, b bulk) (operation.Request, error) {
	a := kinds.Replay{Letters: b.letters(topic), To: r.to, ToGroup: r.toGroup, After: jsontime.Duration(r.move.delay),
		Rate: b.rate, MaxRounds: r.maxRounds, KeepBody: b.store.state != driver.StateDead}
	if r.patch != "" {
		text, err := patchText(r.patch)
		if err != nil {
			return operation.Request{}, err
		}
		a.Patch = text
	}
	return a.Request(), nil
}

// background counts, asks, and leaves an operation to whoever runs a worker. What says what is done, with a place for
// how many.
func (s session) background(ctx context.Context, req operation.Request, yes bool, what string) error {
	q, err := s.operations(os.TempDir()) // others do it: where exports go is theirs to know
	if err != nil {
		return err
	}
	plan, err := count(ctx, q, req)
	if err != nil {
		return err
	}
	what = fmt.Sprintf(what, plan.Done)
	if err := s.confirm(ctx, yes, what+" in the background", ""); err != nil {
		return err
	}
	return s.submit(ctx, q, req, plan.Done, what)
}
