package notify

import (
	"errors"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// Code says what went wrong, for programs.
type Code string

// Codes of errors. Those that are tried again: TIMEOUT, NETWORK_ERROR, PLATFORM_UNAVAILABLE, RATE_LIMIT_EXCEEDED,
// PLATFORM_AUTH_UNAVAILABLE and UNKNOWN.
const (
	CodeInvalidConfig   Code = "INVALID_CONFIG"
	CodeInvalidTarget   Code = "INVALID_TARGET"  // an address that does not exist, a robot that was removed
	CodeInvalidMessage  Code = "INVALID_MESSAGE" // the vendor does not take it, whatever is tried
	CodeContent         Code = "CONTENT_REJECTED"
	CodeAuth            Code = "PLATFORM_AUTH_FAILED"
	CodeAuthUnavailable Code = "PLATFORM_AUTH_UNAVAILABLE" // a failure of the vendor's own
	CodeRateLimit       Code = "RATE_LIMIT_EXCEEDED"
	CodeUnavailable     Code = "PLATFORM_UNAVAILABLE"
	CodeTimeout         Code = "NETWORK_TIMEOUT"
	CodeNetwork         Code = "NETWORK_ERROR"
	CodeShed            Code = "SHED" // low priority under backlog, as Options.Shed says
	CodeUnknown         Code = "UNKNOWN"
)

// Error is why a target was not reached.
type Error struct {
	Code Code
	Text string
	Hint string
	// After is when the vendor wants to hear of us again. Zero: it did not say.
	After time.Duration
	Cause error
}

// Error returns the text, the hint and the code.
func (e *Error) Error() string {
	text := e.Text
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	if e.Hint != "" {
		text += " (hint: " + e.Hint + ")"
	}
	return text + " [" + string(e.Code) + "]"
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Retryable reports whether another try can help.
func (e *Error) Retryable() bool {
	switch e.Code {
	case CodeTimeout, CodeNetwork, CodeUnavailable, CodeRateLimit, CodeAuthUnavailable, CodeUnknown:
		return true
	}
	return false
}

// asError is the Error of any error that a channel returned.
func asError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	code := CodeUnknown
	switch {
	case errors.Is(err, ferry.ErrRefused), errors.Is(err, ferry.ErrInvalid):
		code = CodeInvalidTarget
	case errors.Is(err, driver.ErrNotApplied), errors.Is(err, driver.ErrUnknown):
		code = CodeNetwork
	}
	return &Error{Code: code, Text: "not sent", Cause: err}
}
