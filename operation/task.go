package operation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// Task is an operation for who works on it. It is safe for concurrent use.
type Task struct {
	id        string
	submitted time.Time
	dry       bool
	store     func(ctx context.Context) error // nil: it lies nowhere

	mu         sync.Mutex
	progress   Progress
	checkpoint json.RawMessage
}

// ID of the operation; empty for one that Queue.Do does.
func (t *Task) ID() string { return t.id }

// Submitted is when the operation was submitted, by the broker's clock. What came later should not be its business.
func (t *Task) Submitted() time.Time { return t.submitted }

// DryRun says that nothing is to be changed: only counted.
func (t *Task) DryRun() bool { return t.dry }

// Phase says what is done at the moment.
func (t *Task) Phase(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.progress.Phase = cut(name, maxPhase)
}

// Scanned says how many messages were looked at since Run began, of about how many.
func (t *Task) Scanned(n, total int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.progress.Scanned, t.progress.Total = n, max(n, total)
}

// Did counts messages to which it was done, or would be.
func (t *Task) Did(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.progress.Done += int64(n)
}

// Skip counts messages to which it was not done, and why.
func (t *Task) Skip(n int, why error) {
	if n <= 0 {
		return
	}
	text := whyOf(why)
	t.mu.Lock()
	defer t.mu.Unlock()
	p := &t.progress
	p.Skipped += int64(n)
	if p.Why == nil {
		p.Why = map[string]int64{}
	}
	if _, counted := p.Why[text]; !counted && len(p.Why) >= maxWhy {
		text = "other reasons"
	}
	p.Why[text] += int64(n)
}

// whyOf is an error without what differs from message to message.
func whyOf(err error) string {
	var ours *driver.Error
	text := "no reason"
	switch {
	case errors.As(err, &ours):
		text = ours.Text
	case err != nil:
		text = err.Error()
	}
	return cut(driver.Fingerprint(text), maxWhyText)
}

// Checkpoint reads the last that was saved into a value, and reports whether there is one: in an earlier take of the
// operation.
func (t *Task) Checkpoint(into any) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.checkpoint) == 0 {
		return false, nil
	}
	if err := json.Unmarshal(t.checkpoint, into); err != nil {
		return false, driver.NewError(ferry.ErrInvalid, "the checkpoint cannot be read",
			"use the same version everywhere", err)
	}
	return true, nil
}

// Save keeps a checkpoint: it is stored with the next note, within a second. ErrTooLarge if it has more than MaxArgs
// bytes of JSON.
func (t *Task) Save(checkpoint any) error {
	data, err := json.Marshal(checkpoint)
	if err != nil {
		return driver.NewError(ferry.ErrInvalid, "the checkpoint is no JSON", "use plain data", err)
	}
	if len(data) > MaxArgs {
		return driver.NewError(ferry.ErrTooLarge, fmt.Sprintf("the checkpoint has %d bytes", len(data)),
			fmt.Sprintf("use at most %d", MaxArgs), nil)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.checkpoint = data
	return nil
}

// Sync stores what was saved and counted, now. Before a step that must not be repeated, it is how the next worker knows
// that it was begun.
func (t *Task) Sync(ctx context.Context) error {
	if t.store == nil {
		return ctx.Err()
	}
	return t.store(ctx)
}

// note copies what is to be stored into a record.
func (t *Task) note(r *record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r.Progress, r.Checkpoint = t.progress, t.checkpoint
	r.Progress.Why = maps.Clone(r.Progress.Why)
}
