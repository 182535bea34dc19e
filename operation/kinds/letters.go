package kinds

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/operation"
)

// Letters selects dead letters, or parse errors.
type Letters struct {
	// Topic and Group narrow it. Empty: every one.
	Topic string `json:"topic,omitempty"`
	Group string `json:"group,omitempty"`
	// State is deadletter.StateDead or StateInvalid. Defaults to StateDead.
	State ferry.State `json:"state,omitempty"`
	// Where is the text of a filter (deadletter.ParseFilter). Empty: all.
	Where string `json:"where,omitempty"`
}

func (l Letters) selection() (deadletter.Selection, error) {
	where, err := filter(l.Where)
	return deadletter.Selection{Topic: l.Topic, Group: l.Group, State: l.State, Where: where}, err
}

// Replay brings letters back to work that were dead when it was submitted.
type Replay struct {
	Letters
	// To, ToGroup, After, Rate and MaxRounds are those of deadletter.ReplayOptions.
	To        string   `json:"to,omitempty"`
	ToGroup   string   `json:"to_group,omitempty"`
	After     Duration `json:"after,omitempty"`
	Rate      float64  `json:"rate,omitempty"`
	MaxRounds int      `json:"max_rounds,omitempty"`
	// Patch is a JSON patch for each body, and Headers are set on each message.
	Patch   json.RawMessage   `json:"patch,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	// KeepBody replays parse errors with the bytes that were found.
	KeepBody bool `json:"keep_body,omitempty"`
}

// Request returns what Queue.Submit takes.
func (a Replay) Request() operation.Request {
	return operation.Request{Kind: LettersReplay, Args: a}
}

func (a Replay) options() (r deadletter.ReplayOptions, err error) {
	r = deadletter.ReplayOptions{To: a.To, ToGroup: a.ToGroup, After: time.Duration(a.After), Rate: a.Rate,
		MaxRounds: a.MaxRounds}
	if r.Selection, err = a.selection(); err != nil {
		return r, err
	}
	var edits []deadletter.Edit
	if len(a.Patch) > 0 {
		p, err := deadletter.ParsePatch(a.Patch)
		if err != nil {
			return r, err
		}
		edits = append(edits, deadletter.PatchBody(p))
	}
	for _, name := range slices.Sorted(maps.Keys(a.Headers)) {
		edits = append(edits, deadletter.SetHeader(name, a.Headers[name]))
	}
	if a.KeepBody {
		edits = append(edits, deadletter.KeepBody())
	}
	if len(edits) > 0 {
		r.Edit = deadletter.Edits(edits...)
	}
	return r, r.Check()
}

func (a Replay) check() error {
	_, err := a.options()
	return err
}

func (a Replay) run(ctx context.Context, b *ferry.Broker, t *operation.Task) error {
	r, err := a.options()
	if err != nil {
		return err
	}
	r.DryRun, r.Each, r.Checkpoint = t.DryRun(), count(t), upTo(t)
	return bulk(b, t, func(q *deadletter.Queue) (*deadletter.Operation, error) { return q.Start(ctx, r) })
}

// Remove deletes letters for good that were dead when it was submitted.
type Remove struct {
	Letters
	// Rate is the most in a second. Zero: as fast as it goes.
	Rate float64 `json:"rate,omitempty"`
}

// Request returns what Queue.Submit takes.
func (a Remove) Request() operation.Request {
	return operation.Request{Kind: LettersRemove, Args: a}
}

func (a Remove) options() (r deadletter.RemoveOptions, err error) {
	r.Rate = a.Rate
	if r.Selection, err = a.selection(); err != nil {
		return r, err
	}
	return r, r.Check()
}

func (a Remove) check() error {
	_, err := a.options()
	return err
}

func (a Remove) run(ctx context.Context, b *ferry.Broker, t *operation.Task) error {
	r, err := a.options()
	if err != nil {
		return err
	}
	r.DryRun, r.Each, r.Checkpoint = t.DryRun(), count(t), upTo(t)
	return bulk(b, t, func(q *deadletter.Queue) (*deadletter.Operation, error) { return q.StartRemove(ctx, r) })
}

// bulk does a replay or a removal to its end.
func bulk(b *ferry.Broker, t *operation.Task, start func(q *deadletter.Queue) (*deadletter.Operation, error)) error {
	queue, err := deadletter.New(b)
	if err != nil {
		return err
	}
	op, err := start(queue)
	if err != nil {
		return err
	}
	return follow(op, t)
}

// upTo leaves alone what died, or died again, since the operation was submitted.
func upTo(t *operation.Task) *deadletter.Checkpoint {
	return &deadletter.Checkpoint{Newest: t.Submitted().Add(grain)}
}

// count takes in what became of each letter.
func count(t *operation.Task) func(deadletter.LetterReport) {
	return func(out deadletter.LetterReport) {
		if out.Result == deadletter.Skipped {
			t.Skip(1, out.Why)
			return
		}
		t.Did(1)
	}
}

// followEvery is how often it is told how far a replay is.
const followEvery = 200 * time.Millisecond

// follow waits for a replay, and tells how far it is.
func follow(op *deadletter.Operation, t *operation.Task) error {
	ended := make(chan error, 1)
	go func() {
		_, err := op.Wait()
		ended <- err
	}()
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		var err error
		over := false
		select {
		case err = <-ended:
			over = true
		case <-tick.C:
		}
		p := op.Progress()
		t.Phase(string(p.Phase))
		t.Scanned(int64(p.Scanned), p.Total)
		if over {
			return err
		}
	}
}

// Expire deletes the oldest letters of each topic and group beyond limits.
type Expire struct {
	Letters
	// MaxAge, MaxCount and MaxBytes are those of deadletter.Retention.
	MaxAge   Duration `json:"max_age,omitempty"`
	MaxCount int64    `json:"max_count,omitempty"`
	MaxBytes int64    `json:"max_bytes,omitempty"`
}

// Request returns what Queue.Submit takes.
func (a Expire) Request() operation.Request {
	return operation.Request{Kind: LettersExpire, Args: a}
}

func (a Expire) limits() deadletter.Retention {
	return deadletter.Retention{MaxAge: time.Duration(a.MaxAge), MaxCount: a.MaxCount, MaxBytes: a.MaxBytes}
}

func (a Expire) check() error {
	sel, err := a.selection()
	if err != nil {
		return err
	}
	if err := (deadletter.RemoveOptions{Selection: sel}).Check(); err != nil {
		return err
	}
	if a.limits() == (deadletter.Retention{}) {
		return invalid("no limit is given", "set MaxAge, MaxCount or MaxBytes")
	}
	return a.limits().Check()
}

func (a Expire) run(ctx context.Context, b *ferry.Broker, t *operation.Task) error {
	sel, err := a.selection()
	if err != nil {
		return err
	}
	queue, err := deadletter.New(b)
	if err != nil {
		return err
	}
	expire := queue.Expire
	if t.DryRun() {
		expire = queue.CountExpired
	}
	report, err := expire(ctx, sel, a.limits())
	t.Did(report.Total())
	return err
}
