package main

import (
	"time"
	"unicode/utf8"

	"github.com/ferrymq/ferry/driver"
)

// The JSON forms of messages. They are stable; durations are in nanoseconds.

// messageView is a message. Body is text, BodyBase64 whatever is not UTF-8; ferry pub --ndjson reads both.
type messageView struct {
	ID          string            `json:"id,omitempty"`
	Topic       string            `json:"topic"`
	Key         string            `json:"key,omitempty"`
	Body        *string           `json:"body,omitempty"`
	BodyBase64  []byte            `json:"body_base64,omitempty"`
	ContentType string            `json:"content_type,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`
	Priority    string            `json:"priority,omitempty"`
	MaxAttempts int               `json:"max_attempts,omitempty"`
	PublishedAt *time.Time        `json:"published_at,omitempty"`
}

func viewMessage(m *driver.Message) messageView {
	v := messageView{
		ID: m.ID, Topic: m.Topic, Key: m.Key, ContentType: m.ContentType, Headers: m.Headers,
		Priority: m.Priority.String(), MaxAttempts: m.MaxAttempts, PublishedAt: at(m.PublishedAt),
	}
	if utf8.Valid(m.Body) {
		body := string(m.Body)
		v.Body = &body
	} else {
		v.BodyBase64 = m.Body
	}
	return v
}

// preview returns the body for a cell of a table.
func (v messageView) preview() string {
	if v.Body != nil {
		return *v.Body
	}
	return string(v.BodyBase64)
}

// at returns nil for no time, so that JSON leaves it out.
func at(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// entryView is a message as one group sees it.
type entryView struct {
	messageView
	Ref        string        `json:"ref"`
	Group      string        `json:"group,omitempty"`
	State      driver.State  `json:"state"`
	Attempt    int           `json:"attempt,omitempty"`
	Deliveries int           `json:"deliveries,omitempty"`
	DueAt      *time.Time    `json:"due_at,omitempty"`
	ExpiresAt  *time.Time    `json:"expires_at,omitempty"`
	Instance   string        `json:"instance,omitempty"`
	History    []failureView `json:"history,omitempty"`
	Dead       *deadView     `json:"dead,omitempty"`
	RawBase64  []byte        `json:"raw_base64,omitempty"`
	Problem    string        `json:"problem,omitempty"`
}

func viewEntry(topic string, e driver.Entry) entryView {
	v := entryView{
		Ref: e.Ref.String(), Group: e.Group, State: e.State, Attempt: e.Attempt, Deliveries: e.Deliveries, DueAt: at(e.DueAt),
		ExpiresAt: at(e.ExpiresAt), Instance: e.Instance, History: viewFailures(e.History), RawBase64: e.Raw, Problem: e.Problem,
	}
	v.Topic = topic
	if e.Message != nil {
		v.messageView = viewMessage(e.Message)
	}
	if e.Dead != nil {
		v.Dead = viewDead(e.Dead)
	}
	return v
}

// failureView is one failed attempt.
type failureView struct {
	At       *time.Time    `json:"at,omitempty"`
	Instance string        `json:"instance,omitempty"`
	Attempt  int           `json:"attempt"`
	Duration time.Duration `json:"duration"`
	Reason   driver.Reason `json:"reason"`
	Error    string        `json:"error"`
	Stack    string        `json:"stack,omitempty"`
}

func viewFailures(history []driver.Failure) []failureView {
	var views []failureView
	for _, f := range history {
		views = append(views, failureView{
			At: at(f.At), Instance: f.Instance, Attempt: f.Attempt, Duration: f.Duration, Reason: f.Reason, Error: f.Error, Stack: f.Stack,
		})
	}
	return views
}

// deadView is why a message died, and what to do about it.
type deadView struct {
	Reason      driver.Reason `json:"reason"`
	Error       string        `json:"error"`
	Fingerprint string        `json:"fingerprint"`
	Stack       string        `json:"stack,omitempty"`
	Attempts    int           `json:"attempts"`
	Deliveries  int           `json:"deliveries"`
	Rounds      int           `json:"rounds"`
	Recoverable bool          `json:"recoverable"`
	Action      driver.Action `json:"action"`
	Instance    string        `json:"instance,omitempty"`
	DiedAt      *time.Time    `json:"died_at,omitempty"`
}

func viewDead(d *driver.DeadLetter) *deadView {
	return &deadView{
		Reason: d.Reason, Error: d.Error, Fingerprint: d.Fingerprint, Stack: d.Stack, Attempts: d.Attempts, Deliveries: d.Deliveries,
		Rounds: d.Rounds, Recoverable: d.Recoverable, Action: d.Action, Instance: d.Origin.Instance, DiedAt: at(d.DiedAt),
	}
}
