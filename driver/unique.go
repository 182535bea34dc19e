package driver

import (
	"fmt"
	"time"
)

// Unique asks that a message is the only unsettled one of its topic with this id, for at most TTL.
type Unique struct {
	ID  string
	TTL time.Duration
}

// UniqueHeader tells whoever settles a message which named value is to be removed when the last group has settled it.
const UniqueHeader = "ferry-unique"

// UniqueError is the error of a publish whose unique id another message has. It is an ErrConflict.
type UniqueError struct {
	Topic, Unique string
	// ID of the message that has it.
	ID string
}

// Error says which message has it, and what to do.
func (e *UniqueError) Error() string { return e.whole().Error() }

// Unwrap makes errors.Is see ErrConflict, and errors.As the Error with its hint.
func (e *UniqueError) Unwrap() error { return e.whole() }

func (e *UniqueError) whole() *Error {
	return NewError(ErrConflict, fmt.Sprintf("topic %s has message %s with unique id %s, and it is not settled",
		quote(e.Topic), quote(e.ID), quote(e.Unique)),
		"leave this one out, or publish it again once that one is settled or cancelled", nil)
}

// check says what is wrong with what a message asks, or nil.
func (u *Unique) check(m *Message) error {
	switch {
	case u.ID == "":
		return NewError(ErrInvalid, "the unique id is empty", "name what there is to be only one of", nil)
	case u.TTL < MinValueTTL:
		return NewError(ErrInvalid, fmt.Sprintf("a message cannot be unique for %v", u.TTL),
			fmt.Sprintf("use %v or more: longer than it takes until the message is settled", MinValueTTL), nil)
	case m.Delay >= u.TTL || !m.At.IsZero() && time.Until(m.At) >= u.TTL:
		return NewError(ErrInvalid, fmt.Sprintf("the message is due after it has ceased to be unique, in %v", u.TTL),
			"make the time of Unique longer than the delay, and what handling takes", nil)
	}
	return checkText("unique id", u.ID, MaxIDLen)
}
