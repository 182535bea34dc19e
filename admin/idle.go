package admin

import (
	"fmt"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// whyTopic says in a sentence what a topic does, or why nothing happens.
func whyTopic(s driver.TopicStats) string {
	var ready, inflight, waiting int64
	idle := 0
	for _, g := range s.Groups {
		ready, inflight, waiting = ready+g.Ready, inflight+g.Inflight, waiting+g.Waiting
		if g.Ready > 0 && g.Consumers == 0 && !g.Paused {
			idle++
		}
	}
	switch {
	case s.Paused:
		return fmt.Sprintf("It is paused: %d messages wait until it is resumed.", ready+waiting)
	case len(s.Groups) == 0:
		return "It has no group: nobody consumes it."
	case idle > 0:
		return fmt.Sprintf("Nothing consumes %d of its %d groups, in which messages wait.", idle, len(s.Groups))
	case ready+inflight > 0:
		return fmt.Sprintf("%d messages are ready, %d are being handled.", ready, inflight)
	case waiting > 0:
		return fmt.Sprintf("Nothing is ready: %d messages wait for a retry.", waiting)
	case s.Delayed > 0:
		return fmt.Sprintf("Nothing is due: %d messages are delayed.", s.Delayed)
	case s.Held > 0:
		return fmt.Sprintf("%d messages are halves of transactions that nobody has decided.", s.Held)
	}
	return "Nothing waits."
}

// whyGroup says in a sentence what a group does, or why nothing happens.
func whyGroup(s driver.TopicStats, g driver.GroupStats) string {
	waits := g.Ready + g.Waiting
	switch {
	case s.Paused || g.Paused:
		what := "The group"
		if s.Paused {
			what = "The topic"
		}
		return fmt.Sprintf("%s is paused: %d messages wait until it is resumed.", what, waits)
	case g.Consumers == 0 && waits > 0:
		return fmt.Sprintf("Nothing consumes it: %d messages wait. Check that a worker runs, and on this broker.", waits)
	case heldBack(g):
		return fmt.Sprintf("%d messages are ready and its %d consumers hold none: they may be quiet, limited, or behind an "+
			"open breaker.", g.Ready, g.Consumers)
	case g.Ready+g.Inflight > 0:
		return fmt.Sprintf("%d messages are ready, %d are being handled.", g.Ready, g.Inflight)
	case g.Waiting > 0:
		return fmt.Sprintf("Nothing is ready: %d messages wait for a retry.", g.Waiting)
	case s.Delayed > 0:
		return fmt.Sprintf("Nothing is due: %d messages of the topic are delayed.", s.Delayed)
	case g.Consumers == 0:
		return "Nothing waits, and nothing consumes it."
	}
	return "Nothing waits."
}

// soon is the time in which a consumer that can takes a message that is ready.
const soon = 5 * time.Second

// heldBack reports whether messages are ready that no consumer takes. Between two claims that is so of each group that
// works, for a moment; a broker that does not tell the age says 0.
func heldBack(g driver.GroupStats) bool {
	return g.Ready > 0 && g.Inflight == 0 && (g.Oldest == 0 || g.Oldest >= soon)
}
