package outbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/jsontime"
)

// columns are what a message takes, in the order of values.
const columns = "id, topic, key, body, content_type, headers, options"

const columnCount = 7

// settings are the column options: what few messages have, as JSON.
type settings struct {
	Priority    string              `json:"priority,omitempty"`
	Delay       jsontime.Duration   `json:"delay,omitempty"`
	At          *jsontime.Time      `json:"at,omitempty"`
	TTL         jsontime.Duration   `json:"ttl,omitempty"`
	DedupID     string              `json:"dedup_id,omitempty"`
	DedupWindow jsontime.Duration   `json:"dedup_window,omitempty"`
	MaxAttempts int                 `json:"max_attempts,omitempty"`
	Retry       *driver.RetryPolicy `json:"retry,omitempty"`
	// HeadersBase64 are headers whose values are no UTF-8 text.
	HeadersBase64 map[string][]byte `json:"headers_base64,omitempty"`
}

// values returns a message as the columns hold it.
func values(m *ferry.Message) ([]any, error) {
	s := settings{Delay: jsontime.Duration(m.Delay), At: jsontime.At(m.At),
		TTL: jsontime.Duration(m.TTL), DedupID: m.DedupID,
		DedupWindow: jsontime.Duration(m.DedupWindow), MaxAttempts: m.MaxAttempts, Retry: m.Retry}
	if m.Priority != driver.Normal {
		s.Priority = m.Priority.String()
	}
	texts := make(map[string]string, len(m.Headers))
	for name, value := range m.Headers {
		if utf8.ValidString(value) {
			texts[name] = value
			continue
		}
		if s.HeadersBase64 == nil {
			s.HeadersBase64 = map[string][]byte{}
		}
		s.HeadersBase64[name] = []byte(value)
	}
	headers, err := object(texts)
	if err != nil {
		return nil, err
	}
	options, err := object(s)
	body := m.Body
	if body == nil {
		body = []byte{} // nil is NULL
	}
	return []any{m.ID, m.Topic, m.Key, body, m.ContentType, headers, options}, err
}

// object returns a value as JSON, or nothing if there is nothing in it.
func object(v any) (string, error) {
	data, err := json.Marshal(v)
	if err != nil || string(data) == "{}" {
		return "", err
	}
	return string(data), nil
}

// row is a row of the table on its way.
type row struct {
	seq              int64
	headers, options string
	msg              ferry.Message
	err              error // why it was not published
}

// fields are where a row is read into, in the order of "seq, columns".
func (r *row) fields() []any {
	m := &r.msg
	return []any{&r.seq, &m.ID, &m.Topic, &m.Key, &m.Body, &m.ContentType, &r.headers, &r.options}
}

// decode reads what the columns headers and options say.
func (r *row) decode() error {
	if r.headers != "" {
		if err := json.Unmarshal([]byte(r.headers), &r.msg.Headers); err != nil {
			return unreadable("headers", err)
		}
	}
	if r.options == "" {
		return nil
	}
	var s settings
	if err := json.Unmarshal([]byte(r.options), &s); err != nil {
		return unreadable("options", err)
	}
	m := &r.msg
	m.Delay, m.TTL, m.DedupID, m.DedupWindow = time.Duration(s.Delay), time.Duration(s.TTL), s.DedupID,
		time.Duration(s.DedupWindow)
	m.MaxAttempts, m.Retry = s.MaxAttempts, s.Retry
	if s.At != nil {
		m.At = s.At.Time
	}
	for name, value := range s.HeadersBase64 {
		if m.Headers == nil {
			m.Headers = map[string]string{}
		}
		m.Headers[name] = string(value)
	}
	var err error
	m.Priority, err = parsePriority(s.Priority)
	return err
}

func parsePriority(text string) (driver.Priority, error) {
	for p := driver.Low; p <= driver.Urgent; p++ {
		if text == p.String() {
			return p, nil
		}
	}
	if text == "" {
		return driver.Normal, nil
	}
	return 0, unreadable("options", fmt.Errorf("there is no priority %.40q", text))
}

func unreadable(column string, cause error) error {
	return driver.NewError(ferry.ErrInvalid, fmt.Sprintf("the column %s of the row cannot be read", column),
		"write it as JSON, as docs/transactions.md says, or leave it empty", cause)
}

// permanent reports whether publishing a row again cannot help.
func permanent(err error) bool {
	return slices.ContainsFunc([]error{ferry.ErrInvalid, ferry.ErrTooLarge, ferry.ErrUnsupported, ferry.ErrRefused},
		func(kind error) bool { return errors.Is(err, kind) })
}
