// Package letterjson is the JSON form of messages as a group sees them, of dead letters above all, and of what could
// not be decoded: what ferry prints, and one object on each line of an export and of the emergency file, which an
// import reads. Nothing of a message is lost in it.
package letterjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/jsontime"
)

// Record is one line. Its names are those of ferry dlq ls --output ndjson.
type Record struct {
	ID            string            `json:"id,omitempty"`
	OwnID         bool              `json:"own_id,omitempty"`
	Topic         string            `json:"topic"`
	Key           string            `json:"key,omitempty"`
	Body          *string           `json:"body,omitempty"` // of a body that is UTF-8
	BodyBase64    []byte            `json:"body_base64,omitempty"`
	ContentType   string            `json:"content_type,omitempty"`
	Headers       map[string]string `json:"headers,omitempty"`
	HeadersBase64 map[string][]byte `json:"headers_base64,omitempty"` // of values that are not UTF-8
	Priority      string            `json:"priority,omitempty"`
	TTL           jsontime.Duration `json:"ttl,omitempty"`
	DedupID       string            `json:"dedup_id,omitempty"`
	DedupWindow   jsontime.Duration `json:"dedup_window,omitempty"`
	MaxAttempts   int               `json:"max_attempts,omitempty"`
	Retry         *Retry            `json:"retry,omitempty"`
	PublishedAt   *jsontime.Time    `json:"published_at,omitempty"`

	Ref        string            `json:"ref,omitempty"`
	Group      string            `json:"group,omitempty"`
	State      driver.State      `json:"state,omitempty"`
	Attempt    int               `json:"attempt,omitempty"`
	Deliveries int               `json:"deliveries,omitempty"`
	DueAt      *jsontime.Time    `json:"due_at,omitempty"`
	ExpiresAt  *jsontime.Time    `json:"expires_at,omitempty"`
	Instance   string            `json:"instance,omitempty"`
	SettledAt  *jsontime.Time    `json:"settled_at,omitempty"`
	Took       jsontime.Duration `json:"took,omitempty"`
	History    []Failure         `json:"history,omitempty"`
	Dead       *Dead             `json:"dead,omitempty"`
	RawBase64  []byte            `json:"raw_base64,omitempty"`
	Problem    string            `json:"problem,omitempty"`
	FoundAt    *jsontime.Time    `json:"found_at,omitempty"`
}

// Dead is why a message died.
type Dead struct {
	Reason      driver.Reason  `json:"reason"`
	Error       string         `json:"error"`
	Fingerprint string         `json:"fingerprint"`
	Stack       string         `json:"stack,omitempty"`
	Attempts    int            `json:"attempts"`
	Deliveries  int            `json:"deliveries"`
	Rounds      int            `json:"rounds"`
	Recoverable bool           `json:"recoverable"`
	Action      driver.Action  `json:"action"`
	Instance    string         `json:"instance,omitempty"`
	DiedAt      *jsontime.Time `json:"died_at,omitempty"`
	// What recovery does next, and when, as far as whoever wrote the record worked it out: see deadletter.Recovery. An
	// import ignores it.
	Recovery         string         `json:"recovery,omitempty"`
	NextRetryAt      *jsontime.Time `json:"next_retry_at,omitempty"`
	RecoveryPriority int            `json:"recovery_priority,omitempty"`
}

// Failure is one failed attempt.
type Failure struct {
	At       *jsontime.Time    `json:"at,omitempty"`
	Instance string            `json:"instance,omitempty"`
	Attempt  int               `json:"attempt"`
	Duration jsontime.Duration `json:"duration"`
	Reason   driver.Reason     `json:"reason"`
	Error    string            `json:"error"`
	Stack    string            `json:"stack,omitempty"`
}

// Of returns the record of a message as one group sees it, a dead letter above all, or of an entry that could not be
// decoded.
func Of(topic string, e driver.Entry) Record {
	r := Record{
		Ref: e.Ref.String(), Group: e.Group, State: e.State, RawBase64: e.Raw, Problem: e.Problem,
		FoundAt: jsontime.At(e.FoundAt), Attempt: e.Attempt, Deliveries: e.Deliveries,
		DueAt: jsontime.At(e.DueAt), ExpiresAt: jsontime.At(e.ExpiresAt), Instance: e.Instance,
		SettledAt: jsontime.At(e.SettledAt), Took: jsontime.Duration(e.Took),
	}
	history := e.History
	if m := e.Message; m != nil {
		r.setMessage(m)
	}
	r.Topic = topic
	if d := e.Dead; d != nil {
		r.Dead = &Dead{
			Reason: d.Reason, Error: d.Error, Fingerprint: d.Fingerprint, Stack: d.Stack, Attempts: d.Attempts,
			Deliveries: d.Deliveries,
			Rounds:     d.Rounds, Recoverable: d.Recoverable, Action: d.Action, Instance: d.Origin.Instance,
			DiedAt: jsontime.At(d.DiedAt),
		}
		history = d.History
	}
	for _, f := range history {
		r.History = append(r.History, Failure{jsontime.At(f.At), f.Instance, f.Attempt, jsontime.Duration(f.Duration),
			f.Reason, f.Error, f.Stack})
	}
	return r
}

func (r *Record) setMessage(m *driver.Message) {
	r.ID, r.OwnID, r.Key, r.ContentType, r.Priority = m.ID, m.OwnID, m.Key, m.ContentType, m.Priority.String()
	r.TTL, r.DedupID, r.DedupWindow, r.MaxAttempts, r.Retry = jsontime.Duration(m.TTL), m.DedupID,
		jsontime.Duration(m.DedupWindow), m.MaxAttempts, retryOf(m.Retry)
	r.PublishedAt = jsontime.At(m.PublishedAt)
	if utf8.Valid(m.Body) {
		body := string(m.Body)
		r.Body = &body
	} else {
		r.BodyBase64 = m.Body
	}
	for name, value := range m.Headers {
		if utf8.ValidString(value) {
			r.Headers = with(r.Headers, name, value)
		} else {
			r.HeadersBase64 = with(r.HeadersBase64, name, []byte(value))
		}
	}
}

func with[V any](m map[string]V, name string, value V) map[string]V {
	if m == nil {
		m = map[string]V{}
	}
	m[name] = value
	return m
}

// Append appends the record as one line.
func (r Record) Append(dst []byte) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return dst, err
	}
	return append(dst, b.Bytes()...), nil
}

// Decode reads one line. A field it does not know is an error: what is not understood would be lost.
func Decode(line []byte) (Record, error) {
	var r Record
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return r, fmt.Errorf("not a dead letter in JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return r, errors.New("more than one JSON value")
	}
	return r, nil
}

// Message returns the message of the record, without its delay. Of one that could not be decoded the body is what was
// found.
func (r Record) Message() (*driver.Message, error) {
	priority, err := parsePriority(r.Priority)
	if err != nil {
		return nil, err
	}
	m := &driver.Message{
		ID: r.ID, OwnID: r.OwnID, Topic: r.Topic, Key: r.Key, ContentType: r.ContentType, Priority: priority,
		TTL:     time.Duration(r.TTL),
		DedupID: r.DedupID, DedupWindow: time.Duration(r.DedupWindow), MaxAttempts: r.MaxAttempts, Retry: r.Retry.policy(),
	}
	if r.PublishedAt != nil {
		m.PublishedAt = r.PublishedAt.Time
	}
	switch {
	case r.Body != nil && len(r.BodyBase64) > 0:
		return nil, errors.New("both body and body_base64 are set")
	case r.Body != nil:
		m.Body = []byte(*r.Body)
	case len(r.BodyBase64) > 0:
		m.Body = r.BodyBase64
	case r.State == driver.StateInvalid:
		m.Body = r.RawBase64
	}
	for name, value := range r.Headers {
		m.Headers = with(m.Headers, name, value)
	}
	for name, value := range r.HeadersBase64 {
		m.Headers = with(m.Headers, name, string(value))
	}
	return m, nil
}

func parsePriority(s string) (driver.Priority, error) {
	if s == "" {
		return driver.Normal, nil
	}
	for p := driver.Low; p <= driver.Urgent; p++ {
		if p.String() == s {
			return p, nil
		}
	}
	return 0, fmt.Errorf("priority %q does not exist", s)
}
