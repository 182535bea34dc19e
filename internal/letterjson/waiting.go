package letterjson

import (
	"errors"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Waiting returns the record of a message that was accepted at a time, and is not in a broker. Its delay and its TTL
// are times in it.
func Waiting(m *driver.Message, accepted time.Time) Record {
	e := driver.Entry{Message: m, State: driver.StateReady, DueAt: m.At}
	if m.Delay > 0 && m.Delay != driver.Hold {
		e.DueAt = accepted.Add(m.Delay)
	}
	switch {
	case m.Delay == driver.Hold:
		e.State = driver.StateHeld
	case !e.DueAt.IsZero():
		e.State = driver.StateDelayed
	}
	if m.TTL > 0 {
		e.ExpiresAt = accepted.Add(m.TTL)
	}
	r := Of(m.Topic, e)
	r.Ref = ""
	return r
}

// Due returns the message of a record as it is published now, with an id that the broker remembers. False: its TTL is
// over.
func (r Record) Due(now time.Time) (m *driver.Message, alive bool, err error) {
	if r.ID == "" {
		return nil, false, errors.New("it has no id")
	}
	if m, err = r.Message(); err != nil {
		return nil, false, err
	}
	m.OwnID, m.PublishedAt = true, time.Time{}
	switch {
	case r.State == driver.StateHeld:
		m.Delay = driver.Hold
	case r.DueAt != nil && r.DueAt.After(now):
		m.At = r.DueAt.Time
	}
	if r.ExpiresAt == nil {
		return m, true, nil
	}
	m.TTL = r.ExpiresAt.Sub(now)
	return m, m.TTL > 0, nil
}
