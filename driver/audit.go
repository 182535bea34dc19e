package driver

import "context"

// Auditor finds out whether a backend and the data in it are sound. It takes its time: it is for operators and tests.
type Auditor interface {
	// Diagnose looks at the backend itself: version, settings, what an acknowledged publish really survives.
	Diagnose(ctx context.Context) ([]Finding, error)
	// Audit looks at every message of a topic: each must be in exactly one state for each group, every one in flight
	// must have a lease, and the counts of Stats must equal what is there. With fix, what is found is repaired; a
	// repair is idempotent, loses nothing, and may be interrupted anywhere.
	Audit(ctx context.Context, topic string, fix bool) (AuditReport, error)
}

// Severity says how bad a Finding is.
type Severity string

// Severities.
const (
	SeverityOK      Severity = "ok"
	SeverityWarning Severity = "warning" // works, but promises less than you may think
	SeverityError   Severity = "error"   // will lose or refuse messages
	SeverityUnknown Severity = "unknown" // could not be found out
)

// Finding is one thing that Diagnose looked at.
type Finding struct {
	Severity Severity
	Subject  string // what was looked at, in a word or two
	Text     string // what was found
	Hint     string // what to do about it; empty when ok
}

// AuditReport is the result of an Audit.
type AuditReport struct {
	Topic    string
	Checked  int // messages looked at
	Problems []Problem
	Stats    TopicStats // at the time of the audit
}

// Problem is one thing an Audit found wrong.
type Problem struct {
	// Kind is a short name for a class of problems, such as "orphan" or "count".
	Kind  string
	Group string // empty when it concerns the topic
	ID    string // of the message, if it concerns one
	Text  string
	Fixed bool
}
