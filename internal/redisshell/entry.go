package redisshell

import (
	"slices"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/envelope"
	"github.com/ferrymq/ferry/internal/redisconn"
)

// states are those of a message, by the letters that scripts have for them.
var states = map[string]driver.State{"L": driver.StateDelayed, "H": driver.StateHeld, "R": driver.StateReady,
	"I": driver.StateInflight, "W": driver.StateWaiting, "D": driver.StateDead, "X": driver.StateInvalid,
	"K": driver.StateDone}

// StateOf is what scripts call by a letter.
func StateOf(letter string) driver.State { return states[letter] }

// LetterOf is a state as scripts call it.
func LetterOf(s driver.State) string {
	for letter, state := range states {
		if state == s {
			return letter
		}
	}
	return ""
}

// EntryOf makes an entry of a view, which is what a script tells of a message: {group, place, letter of the state,
// failed attempts, lost leases, rounds, due, expires, instance, published, content, history, record}. The record of a
// dead letter is when it died, where and of what; that of what is kept when it was settled, how long that took, and by
// whom. What cannot be decoded has no message, and is shown as raw; it is due since it was found.
func EntryOf(v redisconn.Reply, topic string, ref driver.Ref, m *driver.Message, raw func() []byte) driver.Entry {
	e := driver.Entry{Group: v.Text(0), Ref: ref, State: states[v.Text(2)], Instance: v.Text(8)}
	if e.State == driver.StateInvalid {
		e.Instance, e.Problem, e.Raw, e.FoundAt = "", v.Text(8), raw(), redisconn.Wall(v.Text(6))
		return e
	}
	if m == nil {
		m = &driver.Message{Body: raw()}
	}
	m.Topic, m.PublishedAt = topic, redisconn.Wall(v.Text(9))
	e.Message = m
	e.DueAt, e.ExpiresAt = redisconn.Wall(v.Text(6)), redisconn.Wall(v.Text(7))
	failed, lost, record := int(v.Number(3)), int(v.Number(4)), v.List(12)
	e.Attempt, e.Deliveries, e.History = failed+1, lost+1, historyOf(v.List(11))
	if e.State == driver.StateDone && len(record) == 3 {
		e.SettledAt, e.Took, e.Instance = redisconn.Wall(record.Text(0)), time.Duration(record.Number(1)), record.Text(2)
	}
	if e.State == driver.StateDead {
		e.Dead = deadLetter(&e, record, failed, lost, int(v.Number(5)))
	}
	return e
}

// historyOf reads failures: time, attempt, failure.
func historyOf(l redisconn.Reply) []driver.Failure {
	var all []driver.Failure
	for _, x := range l {
		item := redisconn.ReplyOf(x)
		fs, err := envelope.DecodeHistory([]byte(item.Text(2)))
		if err != nil || len(fs) != 1 {
			continue
		}
		fs[0].At, fs[0].Attempt = redisconn.Wall(item.Text(0)), int(item.Number(1))
		all = append(all, fs[0])
	}
	return all
}

// deadLetter puts together the dead letter of an entry. One without an instance expired.
func deadLetter(e *driver.Entry, record redisconn.Reply, failed, lost, rounds int) *driver.DeadLetter {
	last, instance := driver.Failure{At: redisconn.Wall(record.Text(0))}, record.Text(1)
	if fs, err := envelope.DecodeHistory([]byte(record.Text(2))); err == nil && len(fs) == 1 {
		last.Reason, last.Error, last.Stack = fs[0].Reason, fs[0].Error, fs[0].Stack
	} else if instance == "" {
		last.Reason, last.Error = driver.ReasonExpired, "expired before it was handled"
	}
	dl := &driver.DeadLetter{Message: e.Message.Clone(), History: slices.Clone(e.History), Attempts: failed,
		Deliveries: lost + 1, Rounds: rounds,
		Origin: driver.Origin{Topic: e.Topic, Group: e.Group, Ref: e.Ref, Instance: instance}}
	dl.Bury(last)
	return dl
}
