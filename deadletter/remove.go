package deadletter

import (
	"context"
	"fmt"

	"github.com/ferrymq/ferry/driver"
)

// RemoveOptions says which letters are deleted for good.
type RemoveOptions struct {
	Selection
	// Rate is the most in a second. Zero: as fast as it goes.
	Rate float64
	// DryRun only says what would be deleted.
	DryRun bool
	// Each, if set, is told what became of every letter.
	Each func(LetterReport)
	// Checkpoint continues a removal that was interrupted, as for a replay.
	Checkpoint *Checkpoint
}

// Remove deletes exactly the letters that are there as it begins, and returns how many. Report.Done counts them.
func (q *Queue) Remove(ctx context.Context, r RemoveOptions) (Report, error) {
	return q.Replay(ctx, r.replay())
}

// StartRemove begins a removal in the background, as Start does a replay.
func (q *Queue) StartRemove(ctx context.Context, r RemoveOptions) (*Operation, error) {
	return q.Start(ctx, r.replay())
}

// replay is a removal as the replay that it almost is.
func (r RemoveOptions) replay() ReplayOptions {
	each := r.Each
	if each != nil {
		each = func(out LetterReport) {
			if out.Result == Replayed {
				out.Result = Deleted
			}
			r.Each(out)
		}
	}
	return ReplayOptions{Selection: r.Selection, Rate: r.Rate, DryRun: r.DryRun, Each: each,
		Checkpoint: r.Checkpoint, remove: true}
}

// Check says what is wrong with the options, or nil.
func (r RemoveOptions) Check() error { return r.replay().Check() }

// bury deletes letters.
func (op *Operation) bury(ctx context.Context, list []ready) error {
	targets := make([]driver.Target, len(list))
	for i, r := range list {
		targets[i] = r.letter.Target()
	}
	var failed error
	for i, err := range op.queue.delete(ctx, targets) {
		switch out := outcomeOf(list[i].letter); {
		case err == nil:
			op.succeed(out)
		case permanent(err):
			op.skip(out, err)
		case failed == nil:
			failed = fmt.Errorf("delete of letter %s: %w", list[i].letter.name(), err)
		}
	}
	return failed
}
