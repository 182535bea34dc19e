// Package jsontime is how times and durations stand in the JSON that people and other programs read: one form of each,
// whoever writes it. What earlier versions wrote is read too.
package jsontime

import (
	"encoding/json"
	"fmt"
	"time"
)

// Layout is the form of a time: RFC 3339 in UTC, to the millisecond, which every broker keeps.
const Layout = "2006-01-02T15:04:05.000Z"

// Time is a time in that form.
type Time struct{ time.Time }

// At returns t, or nil for no time, so that JSON leaves it out.
func At(t time.Time) *Time {
	if t.IsZero() {
		return nil
	}
	return &Time{t}
}

// String returns t in the form of Layout.
func (t Time) String() string { return t.UTC().Format(Layout) }

// MarshalJSON writes t in the form of Layout.
func (t Time) MarshalJSON() ([]byte, error) {
	text := make([]byte, 0, len(Layout)+2) // a page of messages has hundreds
	return append(t.UTC().AppendFormat(append(text, '"'), Layout), '"'), nil
}

// UnmarshalJSON reads any time in RFC 3339.
func (t *Time) UnmarshalJSON(data []byte) error { return t.Time.UnmarshalJSON(data) }

// Duration is a duration as a text: "1.5s".
type Duration time.Duration

// String returns d as time.Duration does.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalJSON writes d as a text.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON reads a text, or a number of nanoseconds.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if len(data) == 0 || data[0] != '"' {
		return json.Unmarshal(data, (*int64)(d))
	}
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%.40q is no duration; one looks like 1.5s", text)
	}
	*d = Duration(parsed)
	return nil
}
