package driver

import (
	"errors"
	"fmt"
	"strings"
)

// Errors of publishing.
var (
	// ErrNotApplied: the backend refused or was not reached; nothing was stored or changed. Safe to try again.
	ErrNotApplied = errors.New("not applied")
	// ErrUnknown: the request may or may not have been applied (timeout, broken connection, cancelled).
	ErrUnknown = errors.New("outcome unknown")
	// ErrFull: a bound was reached. Nothing was stored.
	ErrFull = errors.New("full")
	// ErrTooLarge: the message exceeds the size limit. Nothing was stored.
	ErrTooLarge = errors.New("too large")
)

// Errors of consuming and managing.
var (
	// ErrLeaseLost: the delivery is no longer held. Nothing was changed.
	ErrLeaseLost = errors.New("lease lost")
	// ErrNotFound: no such topic, group or message.
	ErrNotFound = errors.New("not found")
	// ErrConflict: what exists differs from what was asked, or is in a state that forbids it.
	ErrConflict = errors.New("conflict")
)

// Errors of any call.
var (
	// ErrInvalid: the input is wrong. Nothing was sent.
	ErrInvalid = errors.New("invalid")
	// ErrUnsupported: this backend cannot do it; Capabilities says what it can.
	ErrUnsupported = errors.New("unsupported")
	// ErrClosed: the broker, driver or subscription is closed.
	ErrClosed = errors.New("closed")
	// ErrRefused: an authorise hook said no.
	ErrRefused = errors.New("refused")
)

// Error is every error Ferry makes itself: what kind, what happened, and what to do next.
type Error struct {
	Kind  error  // one of the sentinel errors above, for errors.Is
	Text  string // what happened
	Hint  string // what to do next
	Cause error  // the error underneath, or nil
}

// Limits of an error in bytes: whatever a caller or a backend said, it does not fill a log.
const (
	errorTextLimit  = 2 << 10
	errorCauseLimit = 4 << 10
)

// NewError returns an Error of the given kind. Cause may be nil. A very long text or hint is cut.
func NewError(kind error, text, hint string, cause error) *Error {
	return &Error{Kind: kind, Text: shorten(text, errorTextLimit), Hint: shorten(hint, errorTextLimit), Cause: cause}
}

// shorten cuts a text that is longer than limit, and shows that it did.
func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return clip(s, limit) + "…"
}

// Error returns what happened, the cause and the hint in one line.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("ferry: ")
	b.WriteString(e.Text)
	if e.Cause != nil {
		b.WriteString(": ")
		b.WriteString(shorten(e.Cause.Error(), errorCauseLimit))
	}
	if e.Hint != "" {
		b.WriteString(" (hint: ")
		b.WriteString(e.Hint)
		b.WriteString(")")
	}
	return b.String()
}

// Unwrap makes errors.Is and errors.As see the kind and the cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}

// existingTopics begins the hint of an error about a topic that does not exist, before the names of those that do.
const existingTopics = "existing topics: "

// NoTopic is the error about a topic that does not exist. Its hint names some of those that do, so that a typing error
// is seen at once.
func NoTopic(topic string, existing []string) error {
	return NewError(ErrNotFound, fmt.Sprintf("topic %q does not exist", topic), existingTopics+Listed(existing), nil)
}

// NamesTopics reports whether the hint names topics. Whoever answers for a broker keeps it from those who may not see
// every topic.
func (e *Error) NamesTopics() bool { return strings.HasPrefix(e.Hint, existingTopics) }

// mostListed is how many names a hint shows.
const mostListed = 10

// Listed shows some names in a hint.
func Listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	text := strings.Join(names[:min(len(names), mostListed)], ", ")
	if len(names) > mostListed {
		text += fmt.Sprintf(" and %d more", len(names)-mostListed)
	}
	return text
}
