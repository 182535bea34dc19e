package monitor

import (
	"fmt"
	"strings"
	"time"
)

// Code says what is not as it should be, for programs and for other languages than English.
type Code string

// Codes, and the values of About that belong to them. A StuckKind is a code, too: with Count and Age, LongRunning also
// with Instance.
const (
	CodeUnreachable  Code = "broker_unreachable"  // Error
	CodeMemory       Code = "memory_used"         // Share
	CodeNoTopic      Code = "topic_missing"       //
	CodeBound        Code = "bound_used"          // Share
	CodeInvalid      Code = "messages_invalid"    // Count
	CodeDead         Code = "dead_letters"        // Count
	CodeNoConsumer   Code = "no_consumer"         // Count, Groups
	CodeOld          Code = "oldest_waits"        // Age
	CodeGrowing      Code = "backlog_grows"       // Count, Looks, PerSecond
	CodeReconnecting Code = "worker_reconnecting" // Instance, Error
	CodeFailing      Code = "messages_fail"       // Share, Count
	CodeZombies      Code = "handlers_abandoned"  // Instance, Count
)

// About is what a reason is about, and the values its text names. What does not belong to a code is zero.
type About struct {
	// Topic, and Group of it; neither: the broker, or a worker.
	Topic, Group string
	// Instance is a worker.
	Instance string
	Count    int64
	// Share is a part of a whole, from 0 to 1.
	Share float64
	Age   time.Duration
	// Looks is how many in a row saw a backlog that had grown, PerSecond by how much it grows now.
	Looks     int
	PerSecond float64
	// Groups are others of the topic, which have consumers, while this one, made by the first publish, never had one.
	Groups []string
	Error  string
}

// Reason is one thing that is not as it should be.
type Reason struct {
	Status Status
	Code   Code
	About  About
	// Subject is what is meant: "broker", "topic orders", "group billing of topic orders", "worker host-1".
	Subject string
	Text    string
}

// String returns the reason as a sentence.
func (r Reason) String() string { return r.Subject + ": " + r.Text }

func (a About) subject() string {
	switch {
	case a.Group != "":
		return fmt.Sprintf("group %s of topic %s", a.Group, a.Topic)
	case a.Topic != "":
		return "topic " + a.Topic
	case a.Instance != "":
		return "worker " + a.Instance
	}
	return "broker"
}

// text says in English what a code means.
func (a About) text(code Code) string {
	switch code {
	case CodeUnreachable:
		return "not reachable: " + a.Error
	case CodeMemory:
		return fmt.Sprintf("%.0f %% of its memory is used", 100*a.Share)
	case CodeNoTopic:
		return "it does not exist: nothing was ever published to it, or its name is misspelt"
	case CodeBound:
		return fmt.Sprintf("%.0f %% of its bound is used", 100*a.Share)
	case CodeInvalid:
		return fmt.Sprintf("%d messages could not be decoded", a.Count)
	case CodeDead:
		return fmt.Sprintf("it has %d dead letters", a.Count)
	case CodeNoConsumer:
		return fmt.Sprintf("%d messages wait and nothing consumes them%s", a.Count, a.unasked())
	case CodeOld:
		return fmt.Sprintf("the oldest message has waited %v", a.Age.Round(time.Second))
	case CodeGrowing:
		return fmt.Sprintf("the backlog of %d has grown for %d looks in a row, by %.1f/s now",
			a.Count, a.Looks, a.PerSecond)
	case CodeReconnecting:
		return fmt.Sprintf("worker %s has lost the broker: %s", a.Instance, a.Error)
	case CodeFailing:
		return fmt.Sprintf("%.0f %% of %d messages failed in the last minute", 100*a.Share, a.Count)
	case CodeZombies:
		return fmt.Sprintf("%d handlers go on although their message was given up", a.Count)
	}
	return a.stuck(StuckKind(code))
}

// unasked tells of a group that nobody asked for: the first publish made it, and consumers use others.
func (a About) unasked() string {
	if len(a.Groups) == 0 {
		return ""
	}
	return ": the first publish made this group, and consumers use " + strings.Join(a.Groups, ", ") +
		"; consume it, or remove it"
}

func (a About) stuck(kind StuckKind) string {
	age := a.Age.Round(time.Second)
	switch kind {
	case Overdue:
		return fmt.Sprintf("%d messages are overdue, the oldest by %v", a.Count, age)
	case Unexpired:
		return fmt.Sprintf("%d messages have expired and are still there, the oldest for %v", a.Count, age)
	case Stalled:
		return fmt.Sprintf("%d messages are ready and its consumers take none; the oldest waits for %v", a.Count, age)
	case LongRunning:
		return fmt.Sprintf("%d handlers of worker %s do not return, one for %v", a.Count, a.Instance, age)
	}
	return string(kind)
}
