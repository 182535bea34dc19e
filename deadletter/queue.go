package deadletter

import (
	"context"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// Queue works on the dead letters and the parse errors of one broker. It is safe for concurrent use.
type Queue struct {
	broker  *ferry.Broker
	driver  driver.Driver
	maxBody int
}

// New returns the queue of a broker's dead letters.
func New(b *ferry.Broker) (*Queue, error) {
	if b == nil {
		return nil, driver.NewError(driver.ErrInvalid, "the broker is nil", "open one first, with open.URL for example", nil)
	}
	return &Queue{broker: b, driver: b.Driver(), maxBody: b.Driver().Capabilities().MaxBody}, nil
}

// States of letters.
const (
	StateDead    = driver.StateDead    // a dead letter of a group
	StateInvalid = driver.StateInvalid // could not be decoded, which belongs to no group
)

// Selection says which letters are meant.
type Selection struct {
	// Topic and Group narrow it. Empty: every one.
	Topic, Group string
	// State is StateDead or StateInvalid (parse errors, which belong to no group). Defaults to StateDead.
	State ferry.State
	// Where keeps those that it matches. Nil keeps all.
	Where *Filter
	// Only names single letters instead, each with its topic, its group if it is dead, and its Ref or ID.
	Only []ferry.Target
}

func (s *Selection) check() error {
	if s.State == "" {
		s.State = driver.StateDead
	}
	bad := func(text, hint string) error { return driver.NewError(driver.ErrInvalid, text, hint, nil) }
	switch {
	case s.State != driver.StateDead && s.State != driver.StateInvalid:
		return bad("letters are dead or invalid, not "+string(s.State), "set Selection.State to StateDead or StateInvalid")
	case s.State == driver.StateInvalid && s.Group != "":
		return bad("parse errors belong to no group", "leave the group out")
	case len(s.Only) > 0 && (s.Topic != "" || s.Group != ""):
		return bad("single letters name their topics and groups themselves", "leave Selection.Topic and Group out")
	}
	if s.Topic != "" {
		if err := driver.CheckName("topic", s.Topic); err != nil {
			return err
		}
	}
	if s.Group != "" {
		return driver.CheckName("group", s.Group)
	}
	return nil
}

// Letter is a dead letter, or something that could not be decoded (then Message and Dead are nil, and Raw is set).
type Letter struct {
	ferry.Entry
	// From is the topic it was found in.
	From string
}

// letter is an entry that was read, with its body as it was published. What cannot be had back, because a filter or a
// key is not here, is shown as it is stored.
func (q *Queue) letter(ctx context.Context, from string, e driver.Entry) Letter {
	shown, _ := q.broker.UndoEntry(ctx, e)
	return Letter{Entry: shown, From: from}
}

// Target names the letter for Selection.Only: this death of it, no other.
func (l Letter) Target() ferry.Target {
	t := driver.Target{Topic: l.From, Group: l.Group, Ref: l.Ref}
	if l.Message != nil {
		t.ID = l.ID // where letters are found by their id, their Ref alone would mean reading all of them
	}
	if l.Dead != nil {
		t.Death = 1 + l.Dead.Rounds
	}
	return t
}

// name is what the letter is called where its id may be unknown.
func (l Letter) name() string {
	if l.Message != nil && l.ID != "" {
		return l.ID
	}
	return l.Ref.String()
}

// key names what the letter is ordered with, in all topics; empty: nothing.
func (l Letter) key() string {
	if l.Message == nil || l.Key == "" {
		return ""
	}
	return l.From + "/" + l.Group + "/" + l.Key
}

func (l Letter) rounds() int {
	if l.Dead == nil {
		return 0
	}
	return l.Dead.Rounds
}

// diedAt is when it died, or when it was found that it cannot be decoded; zero: not known.
func (l Letter) diedAt() time.Time {
	if l.Dead == nil {
		return l.FoundAt
	}
	return l.Dead.DiedAt
}

// joined is when the message first joined its key: published, or due.
func (l Letter) joined() time.Time {
	m := l.Message
	switch {
	case m == nil:
		return time.Time{}
	case m.Delay > 0 && m.Delay != driver.Hold:
		return m.PublishedAt.Add(m.Delay)
	case m.At.After(m.PublishedAt):
		return m.At
	}
	return m.PublishedAt
}

// size is how much of it counts for limits in bytes.
func (l Letter) size() int {
	if l.Message == nil {
		return len(l.Raw)
	}
	n := len(l.Body) + len(l.Key)
	for k, v := range l.Headers {
		n += len(k) + len(v)
	}
	return n
}

// Get returns one letter. ErrNotFound if there is none, ErrConflict if the message lives.
func (q *Queue) Get(ctx context.Context, t ferry.Target) (Letter, error) {
	views, err := q.driver.Get(ctx, t)
	if err != nil {
		return Letter{}, err
	}
	var state driver.State
	for _, e := range views {
		if t.Group != "" && e.Group != "" && e.Group != t.Group {
			continue
		}
		if state = e.State; state == driver.StateDead || state == driver.StateInvalid {
			return q.letter(ctx, t.Topic, e), nil
		}
	}
	if state == "" {
		return Letter{}, driver.NewError(driver.ErrNotFound, "the group has no such message",
			"name the group where it died", nil)
	}
	return Letter{}, driver.NewError(driver.ErrConflict, "the message is "+string(state)+", not a dead letter",
		"it was replayed meanwhile; there is nothing to do", nil)
}
