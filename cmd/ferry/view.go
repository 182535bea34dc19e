package main

import (
	"context"
	"unicode/utf8"

	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/jsontime"
	"github.com/ferrymq/ferry/internal/letterjson"
)

// The JSON forms of messages. They are stable.

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
	PublishedAt *jsontime.Time    `json:"published_at,omitempty"`
}

func viewMessage(m *driver.Message) messageView {
	v := messageView{
		ID: m.ID, Topic: m.Topic, Key: m.Key, ContentType: m.ContentType, Headers: m.Headers,
		Priority: m.Priority.String(), MaxAttempts: m.MaxAttempts, PublishedAt: jsontime.At(m.PublishedAt),
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

// entryView is a message as one group sees it: the same form that an export writes and an import reads.
type entryView struct{ letterjson.Record }

// viewEntry shows an entry; of a dead letter also what the shipped strategies do next: those of a program are known to
// that program.
func viewEntry(topic string, e driver.Entry) entryView {
	v := entryView{letterjson.Of(topic, e)}
	if v.Dead != nil {
		r := deadletter.RecoveryOf(context.Background(), deadletter.Letter{Entry: e, From: topic}, nil)
		v.Dead.Recovery, v.Dead.NextRetryAt, v.Dead.RecoveryPriority = string(r.Plan), jsontime.At(r.NextRetry), r.Priority
	}
	return v
}

// preview returns the body for a cell of a table.
func (v entryView) preview() string {
	if v.Body != nil {
		return *v.Body
	}
	return string(v.BodyBase64)
}
