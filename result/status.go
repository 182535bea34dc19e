package result

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// State is how far a message is in one group.
type State string

// States.
const (
	Waiting   State = "waiting"   // delayed, ready or parked
	Running   State = "running"   // in a handler
	Retrying  State = "retrying"  // an attempt failed, and another will be made
	Done      State = "done"      // handled; its result is there if the handler returned one
	Failed    State = "failed"    // a dead letter
	Cancelled State = "cancelled" // cancelled, or dropped by its handler
)

// Ended reports whether nothing more is to come, unless somebody replays the message.
func (s State) Ended() bool { return s == Done || s == Failed || s == Cancelled }

// Status is what is known of a message in one group.
type Status struct {
	State State
	// Attempt is the number of the attempt that this tells of. Zero: none has been made, or it is not known.
	Attempt int
	// Error is why the last attempt failed, or why the message was dropped.
	Error string
	// Progress is what the handler said last.
	Progress Step
	// Body is what the handler returned, encoded as ContentType says: see Decode. Nil if it returned nothing.
	Body        []byte
	ContentType string
	// At is the broker's time of this status, and Left how long it is kept from now on. Zero where nothing is kept, and
	// the broker told where the message is.
	At   time.Time
	Left time.Duration
}

// Step is how far a handler is.
type Step struct {
	Done, Total int64
	Note        string
}

// Limits of what is kept beside a result, in bytes.
const (
	errorLimit = driver.ErrorLimit
	noteLimit  = 1 << 10
)

// stamp orders what deliveries of one message write: by the time of their claims and, within one, by the order of its
// writes.
type stamp struct {
	Token      string `json:"token"`
	Claimed    int64  `json:"claimed"` // the backend's time, in microseconds
	Deliveries int    `json:"deliveries"`
	Attempt    int    `json:"attempt"`
	Seq        int    `json:"seq"`
}

// after reports whether s was written later than o. Of two claims at the same time, with the same counts, neither is.
func (s stamp) after(o stamp) bool {
	switch {
	case s.Token == o.Token:
		return s.Seq > o.Seq
	case s.Claimed != o.Claimed:
		return s.Claimed > o.Claimed
	case s.Deliveries != o.Deliveries:
		return s.Deliveries > o.Deliveries
	}
	return s.Attempt > o.Attempt
}

// header is the first line of a stored value, as JSON. What the handler returned follows as it is.
type header struct {
	stamp
	State       State  `json:"state"`
	Error       string `json:"error,omitempty"`
	Done        int64  `json:"done,omitempty"`
	Total       int64  `json:"total,omitempty"`
	Note        string `json:"note,omitempty"`
	ContentType string `json:"content_type,omitempty"`
	Returned    bool   `json:"returned,omitempty"`
}

func encode(s Status, at stamp) ([]byte, error) {
	h := header{stamp: at, State: s.State, Error: cut(s.Error, errorLimit), Done: s.Progress.Done, Total: s.Progress.Total,
		Note:        cut(s.Progress.Note, noteLimit),
		ContentType: s.ContentType, Returned: s.Body != nil}
	line, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	return append(append(line, '\n'), s.Body...), nil
}

func decode(v driver.Value) (Status, stamp, error) {
	line, body, found := bytes.Cut(v.Data, []byte{'\n'})
	var h header
	if err := json.Unmarshal(line, &h); err != nil || !found {
		return Status{}, stamp{}, driver.NewError(ferry.ErrInvalid, fmt.Sprintf("value %.80q is no result", v.Name),
			"let nothing but this package write to the buckets results.00 to results.3f", err)
	}
	s := Status{State: h.State, Attempt: h.Attempt, Error: h.Error, Progress: Step{h.Done, h.Total, h.Note},
		ContentType: h.ContentType, At: v.Written, Left: v.Left}
	if h.Returned {
		s.Body = body
	}
	return s, h.stamp, nil
}

// cut bounds a text, and leaves no half character behind.
func cut(text string, limit int) string {
	if len(text) > limit {
		text = text[:limit]
	}
	return strings.ToValidUTF8(text, "")
}

// Decode decodes what a handler returned. ErrNotFound if that is nothing.
func Decode[T any](ctx context.Context, b *ferry.Broker, s Status) (value T, err error) {
	if s.Body == nil {
		return value, driver.NewError(ferry.ErrNotFound, "the handler returned no result",
			"call result.Return in it, or ask for the status alone with result.Await", nil)
	}
	m, err := ferry.Decode[T](ctx, b, &ferry.Delivery{Message: &ferry.Message{Body: s.Body, ContentType: s.ContentType}})
	if err != nil {
		return value, undecodable(value, err)
	}
	return m.Value, nil
}

// undecodable says of a result what ferry.Decode says of a body: its hint is for handlers, who have a dead letter then.
func undecodable(into any, err error) error {
	e, ok := errors.AsType[*ferry.Error](err)
	if !ok || !errors.Is(err, ferry.ErrInvalid) {
		return err
	}
	return driver.NewError(ferry.ErrInvalid, fmt.Sprintf("the result cannot be read into a %T", into),
		"ask for the type that the handler returned, with a codec for it in Options.Codecs", e.Cause)
}
