package deadletter

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Operation is a replay in the background. Whoever starts one waits for it.
type Operation struct {
	queue  *Queue
	replay ReplayOptions
	cancel context.CancelFunc
	done   chan struct{}
	err    error // once done
	kept   int   // bytes of letters in the plan; only for the one that runs

	mu     sync.Mutex
	report Report
}

// Start begins a replay in the background. Call Wait in the end, after Cancel if it is no longer wanted.
func (q *Queue) Start(ctx context.Context, r ReplayOptions) (*Operation, error) {
	op, err := q.newOperation(r)
	if err != nil {
		return nil, err
	}
	ctx, op.cancel = context.WithCancel(ctx)
	op.done = make(chan struct{})
	go func() {
		defer close(op.done)
		op.err = op.run(ctx)
	}()
	return op, nil
}

func (q *Queue) newOperation(r ReplayOptions) (*Operation, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	r.Selection.State = cmp.Or(r.Selection.State, driver.StateDead)
	op := &Operation{queue: q, replay: r, report: Report{Phase: Planning, DryRun: r.DryRun, Why: map[string]int{}}}
	if r.Checkpoint != nil {
		op.report.Checkpoint = *r.Checkpoint
	}
	return op, nil
}

// Progress returns how far the operation is. Its Checkpoint continues it.
func (op *Operation) Progress() Report {
	op.mu.Lock()
	defer op.mu.Unlock()
	r := op.report
	r.Why = maps.Clone(r.Why)
	r.Checkpoint.Done += r.Done
	r.Checkpoint.Skipped += r.Skipped
	return r
}

// Cancel ends the operation soon. What is done stays done.
func (op *Operation) Cancel() { op.cancel() }

// Wait returns the report of the operation when it has ended.
func (op *Operation) Wait() (Report, error) {
	<-op.done
	op.cancel()
	return op.Progress(), op.err
}

func (op *Operation) run(ctx context.Context) error {
	if len(op.replay.Only) > 0 {
		list, err := op.planOnly(ctx)
		if err == nil {
			err = op.apply(ctx, list)
		}
		return op.end(err)
	}
	s, err := op.queue.newScan(ctx, op.replay.Selection, "")
	if err != nil {
		return err
	}
	if s.at.Total > int64(op.most()) && op.replay.Checkpoint == nil {
		err = op.findNewest(ctx)
	}
	for !s.ended() && err == nil {
		var list []planned
		if list, err = op.plan(ctx, s); err == nil {
			op.replaying()
			err = op.apply(ctx, list)
		}
	}
	return op.end(err)
}

// findNewest finds the last death before an operation of several parts, whose later parts must not take what died again
// because of the earlier ones.
func (op *Operation) findNewest(ctx context.Context) error {
	s, err := op.queue.newScan(ctx, op.replay.Selection, "")
	if err != nil {
		return err
	}
	err = s.each(ctx, func(l Letter, _ error) (bool, error) {
		op.sawDeath(l.diedAt())
		return true, nil
	})
	if c := op.report.Checkpoint; op.replay.State == driver.StateDead {
		op.replay.Checkpoint = &c
	}
	return err
}

func (op *Operation) replaying() {
	op.mu.Lock()
	defer op.mu.Unlock()
	op.report.Phase = Replaying
}

func (op *Operation) end(err error) error {
	op.mu.Lock()
	defer op.mu.Unlock()
	if err == nil {
		op.report.Phase = Done
	}
	return err
}

// look notes how far the plan is.
func (op *Operation) look(s *scan, planned int) {
	op.mu.Lock()
	defer op.mu.Unlock()
	op.report.Phase, op.report.Scanned, op.report.Total = Planning, s.at.Scanned, s.at.Total
	op.report.Planned = op.report.Done + op.report.Skipped + planned
}

// skip notes a letter that stays.
func (op *Operation) skip(out LetterReport, why error) {
	out.Result, out.Why = Skipped, why
	op.mu.Lock()
	op.report.Skipped++
	op.report.Planned = max(op.report.Planned, op.report.Done+op.report.Skipped)
	if k := kindOf(why); len(op.report.Why) < 100 || op.report.Why[k] > 0 {
		op.report.Why[k]++
	}
	op.mu.Unlock()
	op.tell(out)
}

// succeed notes a letter that went.
func (op *Operation) succeed(out LetterReport) {
	out.Result = Replayed
	op.mu.Lock()
	op.report.Done++
	op.report.Planned = max(op.report.Planned, op.report.Done+op.report.Skipped)
	op.mu.Unlock()
	op.tell(out)
}

func (op *Operation) tell(out LetterReport) {
	if op.replay.Each != nil {
		op.replay.Each(out)
	}
}

// kindOf is an error without what differs from letter to letter.
func kindOf(err error) string {
	var ours *driver.Error
	if errors.As(err, &ours) {
		return driver.Fingerprint(ours.Text)
	}
	return driver.Fingerprint(strings.TrimSpace(err.Error()))
}

// pace keeps a rate.
type pace struct {
	rate  float64
	begin time.Time
	sent  int
}

// part is how many letters go in one step, so that a rate is kept within a tenth of a second.
func (p *pace) part() int {
	if p.rate <= 0 {
		return replayPart
	}
	return max(1, min(replayPart, int(p.rate/10)))
}

// replayPart is how many letters are replayed in one step.
const replayPart = 100

// wait waits until n more may go.
func (p *pace) wait(ctx context.Context, n int) error {
	if p.begin.IsZero() {
		p.begin = time.Now()
	}
	due := time.Duration(0)
	if p.rate > 0 {
		due = time.Duration(float64(p.sent)/p.rate*float64(time.Second)) - time.Since(p.begin)
	}
	p.sent += n
	if due <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(due)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
