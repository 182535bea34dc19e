package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"

	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry/operation"
	"github.com/ferrymq/ferry/operation/kinds"
)

const operationLong = `Operations are long work over many messages that lies in the broker until somebody has done it:
dlq retry, rm, expire and export with --background, msg rm and msg move with --all --background. Whoever runs 'ferry
operation run', or a program with an operation.Worker, does them. One whose process is killed is gone on with by the
next.`

const operationExample = `  ferry operation ls
  ferry operation watch 1JCV8M2QK7TZA4
  ferry operation cancel 1JCV8M2QK7TZA4
  ferry operation run`

func newOperation(p process) *cobra.Command {
	c := newNoun("operation", "List, show, watch, run and cancel long work that lies in the broker", operationExample,
		newOperationList(p, ""), newOperationShow(p), newOperationWatch(p), newOperationRun(p), newOperationCancel(p))
	c.Long = operationLong
	return c
}

// operations returns the queue of a broker's operations; with a directory for exports.
func (s session) operations(exports string) (*operation.Queue, error) {
	all := kinds.All(s.broker)
	if exports != "" {
		all = append(all, kinds.Exports(s.broker, exports))
	}
	return operation.New(s.broker, all...)
}

// withOperations opens the broker, and lets work use its operations.
func (r *remote) withOperations(ctx context.Context, work func(s session, q *operation.Queue) error) error {
	return r.with(ctx, func(s session) error {
		q, err := s.operations("")
		if err != nil {
			return err
		}
		return work(s, q)
	})
}

// newOperationList lists operations whose kind begins so.
func newOperationList(p process, prefix string) *cobra.Command {
	c := &cobra.Command{Use: "ls", Short: "List what waits, runs, or ended in the last week", Long: operationLong,
		Example: "  ferry operation ls\n  ferry operation ls --open --output ndjson"}
	r := newRemote(p, c)
	query := operation.Query{Prefix: prefix, Limit: 1000}
	c.Flags().BoolVar(&query.Open, "open", false, "leave out those that have ended")
	c.RunE = func(c *cobra.Command, _ []string) error {
		return r.withOperations(c.Context(),
			func(s session, q *operation.Queue) error { return s.listOperations(c.Context(), q, query) })
	}
	return c
}

// oldJobs is the topic in which versions before operations kept replays in the background.
const oldJobs = "ferry.letterjobs"

// noteOldJobs tells of what an earlier version left there: nobody does it any more.
func (s session) noteOldJobs(ctx context.Context) {
	st, err := s.driver.Stats(ctx, oldJobs)
	if err != nil {
		return
	}
	n := int64(0)
	for _, g := range st.Groups {
		n += g.Ready + g.Waiting + g.Inflight
	}
	if n > 0 {
		s.notef("%d jobs of an earlier version lie in topic %s, and are not done any more: submit them again, and remove "+
			"them with 'ferry topic rm %s'", n, oldJobs, oldJobs)
	}
}

func (s session) listOperations(ctx context.Context, q *operation.Queue, query operation.Query) error {
	s.noteOldJobs(ctx)
	l := newListing(s.remote, operationColumns)
	for {
		p, err := q.List(ctx, query)
		if err != nil {
			return err
		}
		for _, op := range p.Operations {
			if err := l.add(viewOperation(op)); err != nil {
				return err
			}
		}
		if query.Cursor = p.Next; p.Next == "" {
			return l.end("There are no operations; 'ferry dlq retry TOPIC --all --background' makes one.")
		}
	}
}

func newOperationShow(p process) *cobra.Command {
	c := &cobra.Command{Use: "show ID", Short: "Show everything about one operation",
		Example: "  ferry operation show 1JCV8M2QK7TZA4"}
	r := newRemote(p, c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return r.withOperations(c.Context(), func(s session, q *operation.Queue) error {
			op, err := q.Get(c.Context(), args[0])
			if err != nil {
				return err
			}
			v := viewOperation(op)
			return r.one(v, func() error { return s.showOperation(v) })
		})
	}
	return c
}

func newOperationCancel(p process) *cobra.Command {
	c := &cobra.Command{Use: "cancel ID", Short: "End an operation; what it has done stays done",
		Example: "  ferry operation cancel 1JCV8M2QK7TZA4"}
	r := newRemote(p, c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return r.withOperations(c.Context(), func(s session, q *operation.Queue) error {
			if err := q.Cancel(c.Context(), args[0]); err != nil {
				return err
			}
			op, err := q.Get(c.Context(), args[0])
			if err != nil {
				return err
			}
			return r.one(viewOperation(op), func() error {
				if op.State.Ended() {
					return s.sayf("operation %s is %s", op.ID, op.State)
				}
				return s.sayf("operation %s ends as soon as %s looks, within a second or two", op.ID, op.Worker)
			})
		})
	}
	return c
}

func newOperationRun(p process) *cobra.Command {
	c := &cobra.Command{Use: "run", Short: "Do what lies in the broker, until nothing is left",
		Long:    operationLong + "\n\nIt may run on several machines at once: an operation is done by one at a time.",
		Example: "  ferry operation run\n  ferry operation run --forever --export-dir /var/lib/ferry/exports"}
	r := newRemote(p, c)
	var forever bool
	var exports string
	c.Flags().BoolVar(&forever, "forever", false, "wait for more")
	c.Flags().StringVar(&exports, "export-dir", "", "a directory for the files of exports (default: exports are left to "+
		"others)")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := checkExportDir(exports); err != nil {
			return err
		}
		return r.with(c.Context(), func(s session) error { return s.runOperations(c.Context(), exports, forever) })
	}
	return c
}

// checkExportDir refuses what is no directory before an operation fails because of it, which another process could do.
func checkExportDir(dir string) error {
	if dir == "" {
		return nil
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return usage(fmt.Sprintf("--export-dir %q is no directory that can be read", printable(dir)), "make it first")
	}
	return nil
}

func (s session) runOperations(ctx context.Context, exports string, forever bool) error {
	q, err := s.operations(exports)
	if err != nil {
		return err
	}
	w, err := operation.NewWorker(q, operation.WorkerOptions{OnError: func(err error) { s.notef("%v", err) }})
	if err != nil {
		return err
	}
	work := w.Drain
	if forever {
		work = w.Run
	}
	if err := work(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	return s.listOperations(ctx, q, operation.Query{Limit: 1000})
}

// submitted is the JSON form of an operation that was just submitted.
type submitted struct {
	Operation string `json:"operation"`
	Kind      string `json:"kind"`
	Matched   int64  `json:"matched"`
}

// submit puts an operation into the broker, after it was counted and confirmed, and says how to follow it.
func (s session) submit(ctx context.Context, q *operation.Queue, req operation.Request, matched int64,
	what string) error {
	if who, err := user.Current(); err == nil {
		req.By = printable(who.Username)
	}
	op, err := q.Submit(ctx, req)
	if err != nil {
		return err
	}
	run := "ferry operation run"
	if op.Kind == kinds.LettersExport {
		run += " --export-dir DIR"
	}
	return s.one(submitted{op.ID, op.Kind, matched}, func() error {
		return s.sayf("operation %s will %s: see 'ferry operation watch %s', and '%s' if no program has a worker", op.ID,
			what, op.ID, run)
	})
}

// count tells how many messages an operation would be done to, and to how many not.
func count(ctx context.Context, q *operation.Queue, req operation.Request) (operation.Progress, error) {
	req.DryRun = true
	return q.Do(ctx, req)
}

func newOperationWatch(p process) *cobra.Command {
	c := &cobra.Command{Use: "watch ID", Short: "Follow an operation until it ends", Long: "Shows how far an operation " +
		"is until it has ended: as a bar on a terminal, and otherwise as a line for each change. It fails if\nthe " +
		"operation does.",
		Example: "  ferry operation watch 1JCV8M2QK7TZA4\n  ferry operation watch 1JCV8M2QK7TZA4 --output ndjson"}
	r := newRemote(p, c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return r.withOperations(c.Context(),
			func(s session, q *operation.Queue) error { return s.watchOperation(c.Context(), q, args[0]) })
	}
	return c
}

func (s session) watchOperation(ctx context.Context, q *operation.Queue, id string) error {
	op, err := q.Get(ctx, id)
	if err != nil {
		return err
	}
	t := newTerminal(s.process)
	for {
		v := viewOperation(op)
		switch {
		case s.format != formatTable:
			if err := s.one(v, nil); err != nil {
				return err
			}
		case t.live && !op.State.Ended():
			t.draw(printable(v.progress()))
		default:
			t.erase()
			if err := s.sayf("%s", v.progress()); err != nil {
				return err
			}
		}
		if op.State.Ended() {
			if op.State == operation.Failed {
				return failure("operation "+op.ID+" failed: "+op.Problem, "mend what it says, and submit it again")
			}
			return nil
		}
		if op, err = q.Next(ctx, op); err != nil {
			t.erase()
			if errors.Is(err, context.Canceled) && ctx.Err() != nil {
				return nil // it goes on without who watches
			}
			return err
		}
	}
}
