package operation

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// Bounds of operations.
const (
	// MaxOpen is how many operations may be open, waiting and running, at a time; beyond it Submit answers ErrFull.
	MaxOpen = 1000
	// MaxArgs is how many bytes of JSON the arguments of one may have, and its checkpoint.
	MaxArgs = 16 << 10
	// MaxID is how many bytes an id may have.
	MaxID = 64
	// History is how long an operation that has ended can be looked at.
	History = 7 * 24 * time.Hour

	maxWhy     = 20  // kinds of reasons that are counted apart
	maxWhyText = 200 // bytes of one
	maxProblem = 2 << 10
	maxPhase   = 64
)

// State is how far an operation is.
type State string

// States.
const (
	Waiting   State = "waiting"   // for a worker, the first or the next one
	Running   State = "running"   // somebody works on it
	Done      State = "done"      // everything was looked at
	Cancelled State = "cancelled" // what was done stays done
	Failed    State = "failed"    // it can never succeed: see Problem
)

// Ended reports whether nothing more is done for the operation.
func (s State) Ended() bool { return s == Done || s == Cancelled || s == Failed }

// Progress is how far an operation is, in messages. After a kill, Done and Skipped may lack what was done in the last
// second before it.
type Progress struct {
	// Phase is what it does at the moment, in a word of its kind.
	Phase string `json:"phase,omitempty"`
	// Scanned were looked at, of about Total that there were. What begins again counts them anew.
	Scanned int64 `json:"scanned"`
	Total   int64 `json:"total"`
	// Done is how many messages it was done to, or would be, and Skipped to how many not.
	Done    int64 `json:"done"`
	Skipped int64 `json:"skipped"`
	// Why counts what was skipped by reason.
	Why map[string]int64 `json:"why,omitempty"`
}

// Operation is one operation as it was read.
type Operation struct {
	ID   string
	Kind string
	Args json.RawMessage
	// By says who asked for it, as that told.
	By string
	// DryRun only counts what would be done.
	DryRun bool
	State  State
	// Cancelling says that somebody wants it to end; its worker looks each second.
	Cancelling bool
	// Submitted, Started and Ended are by the broker's clock. Zero: not yet.
	Submitted, Started, Ended time.Time
	// Worker works on it, or did last.
	Worker string
	// Takes is how often a worker took it: once, and again after each stop, kill and error.
	Takes int
	Progress
	// Problem is why it failed, or what keeps it from going on.
	Problem string
	// Revision of the stored value, for Next.
	Revision uint64
}

// record is the stored form of an operation.
type record struct {
	Kind       string          `json:"kind"`
	Args       json.RawMessage `json:"args"`
	By         string          `json:"by,omitempty"`
	DryRun     bool            `json:"dry_run,omitempty"`
	End        State           `json:"end,omitempty"` // Done, Cancelled or Failed
	Cancel     bool            `json:"cancel,omitempty"`
	Submitted  time.Time       `json:"submitted,omitzero"` // of the first write, known to who writes next
	Started    time.Time       `json:"started,omitzero"`
	Ended      time.Time       `json:"ended,omitzero"`
	Worker     string          `json:"worker,omitempty"`
	Takes      int             `json:"takes,omitempty"`
	Progress   Progress        `json:"progress"`
	Checkpoint json.RawMessage `json:"checkpoint,omitempty"`
	Problem    string          `json:"problem,omitempty"`
}

const (
	bucket     = driver.OperationsBucket
	opPrefix   = "op/"
	lockPrefix = "lock/"
	clockName  = "clock" // a value that is written to learn the time
)

// stored is an operation and the revision of its value.
type stored struct {
	record
	id       string
	revision uint64
}

// decode reads a value of op/.
func decode(v driver.Value) (stored, error) {
	s := stored{id: strings.TrimPrefix(v.Name, opPrefix), revision: v.Revision}
	if err := json.Unmarshal(v.Data, &s.record); err != nil {
		return s, driver.NewError(ferry.ErrInvalid, fmt.Sprintf("operation %s cannot be read", s.id),
			"use the same version everywhere", err)
	}
	if s.Submitted.IsZero() {
		s.Submitted = v.Written.UTC()
	}
	return s, nil
}

// encode returns the bytes of a record.
func (r record) encode() ([]byte, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return nil, driver.NewError(ferry.ErrInvalid, fmt.Sprintf("an operation of kind %s cannot be stored", r.Kind),
			"its arguments and its checkpoint have to be JSON", err)
	}
	return data, nil
}

// operation is what people see; held says whether somebody has its lock.
func (s stored) operation(held bool) Operation {
	op := Operation{ID: s.id, Kind: s.Kind, Args: s.Args, By: s.By, DryRun: s.DryRun, State: s.End,
		Cancelling: s.Cancel && s.End == "", Submitted: s.Submitted, Started: s.Started,
		Ended: s.Ended, Worker: s.Worker, Takes: s.Takes, Progress: s.Progress, Problem: s.Problem, Revision: s.revision}
	switch {
	case s.End != "":
	case held:
		op.State = Running
	default:
		op.State = Waiting
	}
	return op
}

// cut shortens a text to so many bytes.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}
