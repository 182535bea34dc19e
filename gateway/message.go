package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/jsontime"
	"github.com/ferrymq/ferry/internal/letterjson"
)

// message is one in JSON, as it is published. Its names are those of ferry's own lines of JSON.
type message struct {
	ID          string            `json:"id,omitempty"`
	Topic       string            `json:"topic,omitempty"` // of a follow-up
	Key         string            `json:"key,omitempty"`
	JSON        json.RawMessage   `json:"json,omitempty"` // a body that is JSON
	Body        *string           `json:"body,omitempty"` // one that is text
	BodyBase64  []byte            `json:"body_base64,omitempty"`
	ContentType string            `json:"content_type,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`
	Priority    string            `json:"priority,omitempty"`
	Delay       jsontime.Duration `json:"delay,omitempty"`
	At          *jsontime.Time    `json:"at,omitempty"`
	TTL         jsontime.Duration `json:"ttl,omitempty"`
	DedupID     string            `json:"dedup_id,omitempty"`
	DedupWindow jsontime.Duration `json:"dedup_window,omitempty"`
	MaxAttempts int               `json:"max_attempts,omitempty"`
	Retry       *letterjson.Retry `json:"retry,omitempty"`
}

const jsonType = "application/json"

// whole returns the message for a topic.
func (m message) whole(topic string) (*driver.Message, error) {
	if len(m.JSON) > 0 {
		if m.Body != nil || len(m.BodyBase64) > 0 {
			return nil, invalid("a message has more than one body", "use one of json, body and body_base64", nil)
		}
		m.BodyBase64 = m.JSON
		if m.ContentType == "" {
			m.ContentType = jsonType
		}
	}
	r := letterjson.Record{
		ID: m.ID, OwnID: m.ID != "", Topic: topic, Key: m.Key, Body: m.Body, BodyBase64: m.BodyBase64,
		ContentType: m.ContentType,
		Headers:     m.Headers, Priority: m.Priority, TTL: m.TTL, DedupID: m.DedupID, DedupWindow: m.DedupWindow,
		MaxAttempts: m.MaxAttempts, Retry: m.Retry,
	}
	out, err := r.Message()
	if err != nil {
		return nil, invalid("a message cannot be read", "see docs/gateway.md for its fields", err)
	}
	out.Delay = time.Duration(m.Delay)
	if m.At != nil {
		out.At = m.At.Time
	}
	return out, nil
}

// fromRequest returns the message of a request whose body is the body: what else there is stands in its headers.
func fromRequest(r *http.Request, topic string, body []byte) (*driver.Message, error) {
	m := &driver.Message{Topic: topic, Body: body, ContentType: r.Header.Get("Content-Type"),
		ID: r.Header.Get("Idempotency-Key")}
	m.OwnID = m.ID != ""
	for name, values := range r.Header {
		lower := strings.ToLower(name)
		if err := setHeader(m, lower, values[0]); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// headerPrefix is that of headers that become headers of the message.
const headerPrefix = "ferry-header-"

// setHeader sets what one header of a request says about its message. Attributes of CloudEvents stay headers.
func setHeader(m *driver.Message, name, value string) (err error) {
	switch name {
	case "ferry-key":
		m.Key = value
	case "ferry-delay":
		m.Delay, err = time.ParseDuration(value)
	case "ferry-at":
		m.At, err = time.Parse(time.RFC3339, value)
	case "ferry-ttl":
		m.TTL, err = time.ParseDuration(value)
	case "ferry-dedup-id":
		m.DedupID = value
	case "ferry-dedup-window":
		m.DedupWindow, err = time.ParseDuration(value)
	case "ferry-max-attempts":
		m.MaxAttempts, err = strconv.Atoi(value)
	case "ferry-priority":
		m.Priority, err = priority(value)
	default:
		own, ok := strings.CutPrefix(name, headerPrefix)
		if strings.HasPrefix(name, "ce-") {
			own, ok = name, true
			if plain, err := url.PathUnescape(value); err == nil { // over HTTP attributes are percent-encoded
				value = plain
			}
		} else if !ok && strings.HasPrefix(name, "ferry-") {
			return invalid(fmt.Sprintf("there is no header %.60q", name), "use Ferry-Header-NAME for headers of the message",
				nil)
		}
		if ok && !utf8.ValidString(value) { // who receives it in JSON would get something else
			return invalid(fmt.Sprintf("the value of header %q is not UTF-8", name), "send text, or bytes in base64", nil)
		}
		if ok {
			if m.Headers == nil {
				m.Headers = map[string]string{}
			}
			m.Headers[own] = value
		}
	}
	if err != nil {
		return invalid(fmt.Sprintf("the value of header %q cannot be read", name),
			"durations look like 1.5s, times like 2026-01-02T15:04:05Z", err)
	}
	return nil
}

func priority(name string) (driver.Priority, error) {
	for p := driver.Low; p <= driver.Urgent; p++ {
		if p.String() == name {
			return p, nil
		}
	}
	return 0, invalid(fmt.Sprintf("there is no priority %.40q", name), "use low, normal, high or urgent", nil)
}

// delivery is one in JSON.
type delivery struct {
	// Lease is what settles and extends it.
	Lease      string            `json:"lease"`
	LeaseFor   jsontime.Duration `json:"lease_for"`
	Attempt    int               `json:"attempt"`
	Deliveries int               `json:"deliveries"`
	Cause      string            `json:"cause"`

	ID          string            `json:"id"`
	Topic       string            `json:"topic"`
	Group       string            `json:"group"`
	Key         string            `json:"key,omitempty"`
	JSON        json.RawMessage   `json:"json,omitempty"`
	Body        *string           `json:"body,omitempty"`
	BodyBase64  []byte            `json:"body_base64,omitempty"`
	ContentType string            `json:"content_type,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`
	PublishedAt *jsontime.Time    `json:"published_at,omitempty"`

	message *driver.Message // of which the above is shown
}

// shown returns a delivery in JSON. A body that is JSON stays so, text is text, and the rest is base64.
func shown(d *driver.Delivery, lease string, left time.Duration) delivery {
	out := delivery{
		Lease: lease, LeaseFor: jsontime.Duration(left.Round(time.Millisecond)), Attempt: d.Attempt, Deliveries: d.Deliveries,
		Cause:   d.Cause.String(),
		message: d.Message, ID: d.ID, Topic: d.Topic, Group: d.Group, Key: d.Key, ContentType: d.ContentType,
		Headers: d.Headers, PublishedAt: jsontime.At(d.PublishedAt),
	}
	if isJSON(d.ContentType) {
		out.JSON = compact(d.Body)
	}
	switch {
	case out.JSON != nil:
	case utf8.Valid(d.Body):
		body := string(d.Body)
		out.Body = &body
	default:
		out.BodyBase64 = d.Body
	}
	return out
}

// compact returns a body in JSON without white space, so that it stands in one line; nil if it is no JSON.
func compact(body []byte) json.RawMessage {
	var out bytes.Buffer
	out.Grow(len(body))
	if json.Compact(&out, body) != nil {
		return nil
	}
	return out.Bytes()
}

func isJSON(contentType string) bool {
	base, _, _ := strings.Cut(contentType, ";")
	return base == jsonType || strings.HasSuffix(base, "+json")
}
