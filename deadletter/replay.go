package deadletter

import (
	"context"
	"fmt"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// ReplayOptions says which letters go back to work, and how.
type ReplayOptions struct {
	Selection
	// To is another topic, to which they are moved. Empty: each goes back to where it died, to its group alone.
	To string
	// ToGroup is another group of their topic, which gets them instead; only what it has settled already. Empty: their
	// own.
	ToGroup string
	// After makes them due this long from now.
	After time.Duration
	// Edit changes each message. Parse errors need one; KeepBody is the least.
	Edit Edit
	// Rate is the most in a second. Zero: as fast as it goes.
	Rate float64
	// MaxRounds leaves those alone that were replayed this often. Zero: no bound.
	MaxRounds int
	// MaxPlan is how many letters are put in order at once. Beyond it, a second part follows in the order of dying.
	// Defaults to 1,000,000.
	MaxPlan int
	// DryRun only says what would be done.
	DryRun bool
	// Each, if set, is told what became of every letter, in order.
	Each func(LetterReport)
	// Checkpoint continues a replay that was interrupted: that of its Report. What died again since it began is left
	// alone. Nil begins a new one.
	Checkpoint *Checkpoint

	remove bool // they are deleted instead
}

// Checkpoint is how far a replay got. It is plain data: keep it as JSON.
type Checkpoint struct {
	// Newest is when the last letter of the selection had died as the replay began, by the backend's clock.
	Newest time.Time `json:"newest"`
	// Done and Skipped are counts of the parts before.
	Done    int `json:"done"`
	Skipped int `json:"skipped"`
}

// Result is what became of one letter.
type Result string

// Results.
const (
	Replayed Result = "replayed" // or would be
	Skipped  Result = "skipped"  // stays a letter, or was gone already
	Deleted  Result = "deleted"
)

// LetterReport is what became of one letter, and why if it was skipped.
type LetterReport struct {
	Topic, Group string
	Ref          ferry.Ref
	ID, Key      string
	Result       Result
	// Why is set for what was skipped.
	Why error
	// To and NewID are set for what went to another topic.
	To, NewID string
}

// Phase is what an operation does at the moment.
type Phase string

// Phases.
const (
	Planning  Phase = "planning"
	Replaying Phase = "replaying"
	Done      Phase = "done"
)

// Report is what an operation did, or is doing.
type Report struct {
	Phase   Phase
	Scanned int   // letters looked at
	Total   int64 // about how many there were
	Planned int   // letters that matched
	Done    int   // went back to work, or would
	Skipped int
	// Why counts those that were skipped by the kind of the reason.
	Why        map[string]int
	Checkpoint Checkpoint
	DryRun     bool
}

// Check says what is wrong with the options, or nil.
func (r ReplayOptions) Check() error {
	if err := r.Selection.check(); err != nil {
		return err
	}
	bad := func(text, hint string) error { return driver.NewError(driver.ErrInvalid, text, hint, nil) }
	switch {
	case r.Rate < 0 || r.MaxRounds < 0 || r.MaxPlan < 0 || r.After < 0:
		return bad("Rate, MaxRounds, MaxPlan or After is negative", "leave it zero for the default")
	case r.Rate > 0 && r.Rate < 0.001:
		return bad(fmt.Sprintf("a rate of %g in a second would take for ever", r.Rate), "use at least 0.001")
	case r.State == driver.StateInvalid && r.Edit == nil && !r.remove:
		return bad("what could not be decoded has no message to replay",
			"give an Edit that makes one; KeepBody takes the bytes as they are")
	}
	if r.ToGroup != "" {
		return r.checkGroup()
	}
	if r.To == "" {
		return nil
	}
	if r.To == r.Topic {
		return bad("the letters are in topic "+r.To+" already", "leave To out: each then goes back to its own group")
	}
	return driver.CheckTopic(r.To)
}

func (r ReplayOptions) checkGroup() error {
	bad := func(text, hint string) error { return driver.NewError(driver.ErrInvalid, text, hint, nil) }
	switch {
	case r.To != "":
		return bad("letters go to another topic or to another group, not to both", "leave To or ToGroup out")
	case r.State == driver.StateInvalid:
		return bad("what could not be decoded belongs to no group", "leave ToGroup out")
	case r.ToGroup == r.Group:
		return bad("the letters are in group "+r.ToGroup+" already", "leave ToGroup out")
	}
	return driver.CheckName("group", r.ToGroup)
}

// Replay brings letters back to work, and returns when all that were there as it began are done. An error, or the end
// of ctx, ends it in between: the report has the checkpoint to continue with, but it is as safe to begin anew.
//
// Letters are put in the order of their publishing first, so that those of one key come back in order. Each goes back
// in one atomic step; to another topic it is published with an id of its own, and deleted here.
func (q *Queue) Replay(ctx context.Context, r ReplayOptions) (Report, error) {
	op, err := q.newOperation(r)
	if err != nil {
		return Report{}, err
	}
	err = op.run(ctx)
	return op.Progress(), err
}
