package redisshell

import (
	"errors"
	"fmt"

	"github.com/ferrymq/ferry/driver"
)

// PublishAtOnce is how many messages one script stores, so that it blocks the server for a few milliseconds.
const PublishAtOnce = 250

// publishAtomicly is how many messages an atomic publish may have.
const publishAtomicly = 1000

// CheckAtomic refuses messages that do not belong to one part of one topic, so that they cannot be stored as one step.
// partOf returns the number of a message's part; what says what a part is called.
func CheckAtomic(what string, msgs []*driver.Message, maxBody int,
	partOf func(*driver.Message) (int, error)) error {
	unsupported := func(text, hint string) error { return driver.NewError(driver.ErrUnsupported, text, hint, nil) }
	if len(msgs) > publishAtomicly {
		return unsupported(fmt.Sprintf("%d messages are too many for one step", len(msgs)),
			fmt.Sprintf("publish at most %d atomically", publishAtomicly))
	}
	for _, m := range msgs {
		if err := m.CheckPublish(maxBody); err != nil {
			return err
		}
	}
	first := 0
	for i, m := range msgs {
		if m.Topic != msgs[0].Topic {
			return unsupported("an atomic publish reaches over topics", "publish to one topic, or not atomically")
		}
		part, err := partOf(m)
		if err != nil {
			return err
		}
		if i > 0 && part != first {
			return unsupported(fmt.Sprintf("an atomic publish reaches over %ss of topic %q", what, m.Topic),
				"give the messages one key, or use one "+what)
		}
		first = part
	}
	return nil
}

// Lost are topics, and parts of them, that a publish could not reach, by their names: what follows for them in the same
// call is not sent, or later messages of a key would be stored without those before them.
type Lost map[string]error

// Note notes why a topic or a part could not be reached, if it could not.
func (l *Lost) Note(where string, err error) {
	if err != nil && *l == nil {
		*l = Lost{}
	}
	if err != nil {
		(*l)[where] = err
	}
}

// Refuse says why nothing more is sent there, or nil.
func (l Lost) Refuse(where string) error {
	if err := l[where]; err != nil {
		return StayBehind(err)
	}
	return nil
}

// StayBehind is why a message was not sent.
func StayBehind(err error) error {
	return driver.NewError(driver.ErrNotApplied, "a message before it in the call was not stored",
		"publish them again in the same order", err)
}

// ErrBound refuses a message to a topic that is full.
func ErrBound(topic string) error {
	return driver.NewError(driver.ErrFull, fmt.Sprintf("topic %q has reached its bound", topic),
		"publish again when consumers have caught up, or raise the bound", nil)
}

// Unfull hides that a server without memory refused follow-ups behind what it means for a settlement.
func Unfull(err error) error {
	if errors.Is(err, driver.ErrFull) {
		return driver.NewError(driver.ErrNotApplied, "the follow-ups could not be stored",
			"settle again when the server has room", err)
	}
	return err
}
