package driver

import (
	"regexp"
	"time"
)

// Reason says why a message died. Users may use their own; these are the ones Ferry itself gives.
type Reason string

// Reasons.
const (
	ReasonMaxAttempts    Reason = "max_attempts"
	ReasonMaxDeliveries  Reason = "max_deliveries"
	ReasonFatal          Reason = "fatal"
	ReasonTimeout        Reason = "timeout"
	ReasonPanic          Reason = "panic"
	ReasonExpired        Reason = "expired"
	ReasonRateLimited    Reason = "rate_limited"
	ReasonKeyBlocked     Reason = "key_blocked"
	ReasonBreakerOpen    Reason = "breaker_open"
	ReasonQueueFull      Reason = "queue_full"
	ReasonInvalidMessage Reason = "invalid_message"
	ReasonDownstream     Reason = "downstream_error"
	ReasonOverload       Reason = "overload"
	ReasonRejected       Reason = "rejected"
)

// Action is what an operator is advised to do with a dead letter.
type Action string

// Actions.
const (
	ActionAutoRetry    Action = "auto_retry"
	ActionDelayedRetry Action = "delayed_retry"
	ActionManualReview Action = "manual_review"
	ActionDiscard      Action = "discard"
	ActionEscalate     Action = "escalate"
)

// Advice returns whether a message that died for this reason can be expected to succeed unchanged, and what to do. The
// shipped strategies of package deadletter bring back what is recoverable, and nothing else.
func (r Reason) Advice() (recoverable bool, action Action) {
	switch r {
	case ReasonTimeout, ReasonDownstream, ReasonOverload, ReasonQueueFull, ReasonBreakerOpen,
		ReasonMaxAttempts, ReasonPanic:
		// of a panic: after a deploy
		return true, ActionDelayedRetry
	case ReasonRateLimited, ReasonKeyBlocked:
		return true, ActionAutoRetry
	case ReasonMaxDeliveries:
		return false, ActionEscalate
	case ReasonExpired:
		return false, ActionDiscard
	}
	return false, ActionManualReview
}

// DeadLetter is a dead message with everything needed to understand and replay it.
type DeadLetter struct {
	Message *Message
	Reason  Reason
	Error   string
	// Fingerprint is Error with its numbers, ids and addresses taken out, so that like errors group together.
	Fingerprint string
	Stack       string    // of a panic
	History     []Failure // the newest HistoryLimit attempts, oldest first
	Origin      Origin
	Attempts    int // failed attempts in all
	Deliveries  int
	Recoverable bool
	Action      Action
	Rounds      int // how often it was replayed and died again
	DiedAt      time.Time
}

// Origin is where a dead letter was consumed.
type Origin struct {
	Topic    string
	Group    string
	Ref      Ref
	Instance string
}

// Limits of what a dead letter keeps, so that a record stays bounded whatever a handler returns.
const (
	HistoryLimit = 10
	ErrorLimit   = 4 << 10 // of an error, and of a reason
	StackLimit   = 16 << 10
)

// Bury fills in what follows from the last failure: reason, error, fingerprint, stack and advice.
func (dl *DeadLetter) Bury(last Failure) {
	dl.Reason, dl.Error, dl.Stack = last.Reason, last.Error, last.Stack
	dl.Fingerprint = Fingerprint(last.Error)
	dl.Recoverable, dl.Action = dl.Reason.Advice()
	dl.DiedAt = last.At
}

// AppendFailure appends f to a history, keeps it bounded, and returns it.
func AppendFailure(history []Failure, f Failure) []Failure {
	f.Reason, f.Error = Reason(clip(string(f.Reason), ErrorLimit)), clip(f.Error, ErrorLimit)
	f.Stack = clip(f.Stack, StackLimit)
	if len(history) >= HistoryLimit {
		history = append(history[:0:0], history[len(history)-HistoryLimit+1:]...)
	}
	return append(history, f)
}

func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && s[limit]&0xC0 == 0x80 { // not inside a rune
		limit--
	}
	return s[:limit]
}

var variable = regexp.MustCompile(`0x[0-9a-fA-F]+` +
	`|\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b` +
	`|\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?\b` +
	`|\[[0-9a-fA-F:]*::?[0-9a-fA-F:]*\](?::\d+)?` +
	`|\b[0-9a-fA-F]{16,}\b` +
	`|\b[a-fA-F]{0,3}\d[0-9a-fA-F]{4,}\b` + // a short hex id has a digit early on; a word has none
	`|\d+(?:\.\d+)?`)

// Fingerprint returns text with hex numbers, UUIDs, addresses, long hex ids and numbers replaced by "#".
func Fingerprint(text string) string { return variable.ReplaceAllString(clip(text, ErrorLimit), "#") }
