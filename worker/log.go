package worker

import (
	"context"
	"log/slog"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/ferrymq/ferry/driver"
)

// logKind is a kind of line in the log. Each kind is limited by itself, so that a storm of one does not hide another.
type logKind uint8

const (
	logPanic logKind = iota
	logUndecoded
	logDead
	logRetry
	logLost
	logRefused
	logEmergency
	logKinds
)

var logLines = [logKinds]struct {
	level slog.Level
	text  string
}{
	logPanic:     {slog.LevelError, "a handler panicked"},
	logUndecoded: {slog.LevelWarn, "a message does not decode, and is a dead letter now"},
	logDead:      {slog.LevelWarn, "a message became a dead letter"},
	logRetry:     {slog.LevelInfo, "a handler failed; its message is tried again"},
	logLost:      {slog.LevelWarn, "a lease was lost while the handler ran; its message is delivered again"},
	logRefused:   {slog.LevelWarn, "an outcome was not accepted: the message is delivered again"},
	logEmergency: {slog.LevelError,
		"EMERGENCY: the broker does not take a dead letter; it was written to a file, and stays unsettled"},
}

const (
	logMost = 3           // lines of a kind in each logSpan
	logSpan = time.Second // of the engine's clock
	logText = 1 << 10     // bytes of an error
	logDeep = 4 << 10     // bytes of a stack
)

// logLimit bounds how many lines of each kind are written, and counts the others.
type logLimit struct {
	mu    sync.Mutex
	spans [logKinds]logCount
}

type logCount struct {
	until         time.Duration // end of the span
	written, left int
}

// take reports whether one more line of a kind may be written now, and how many were left out before it. What is left
// out first in a span says so, for somebody to come back at its end.
func (l *logLimit) take(kind logKind, now time.Duration) (left int, ok, first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &l.spans[kind]
	if now >= s.until {
		left = s.left
		*s = logCount{until: now + logSpan}
	}
	if s.written == logMost {
		s.left++
		return 0, false, s.left == 1
	}
	s.written++
	return left, true, false
}

// over returns how many lines were left out in spans that have ended, and forgets them. The next look is due at next.
func (l *logLimit) over(now time.Duration) (left [logKinds]int, next time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	next = never
	for kind := range l.spans {
		s := &l.spans[kind]
		switch {
		case s.left == 0:
		case now >= s.until:
			left[kind], s.left = s.left, 0
		default:
			next = min(next, s.until)
		}
	}
	return left, next
}

// logLine writes a line of a kind, unless there were too many of them just now. engine.mu is not held.
func (e *engine) logLine(ctx context.Context, kind logKind, c *consumer, d *driver.Delivery, more ...any) {
	line := &logLines[kind]
	if !e.log.Enabled(ctx, line.level) {
		return
	}
	left, ok, first := e.lines.take(kind, e.now())
	if !ok {
		if first {
			e.mu.Lock()
			e.watchUntil(e.now() + logSpan)
			e.mu.Unlock()
		}
		return
	}
	attrs := append([]any{"topic", c.topic, "group", c.group, "id", d.ID}, more...)
	if left > 0 {
		attrs = append(attrs, "left_out", left)
	}
	e.log.Log(ctx, line.level, line.text, attrs...)
}

// logLeftOut tells how many lines were left out in spans that have ended, and returns when the next one ends.
func (e *engine) logLeftOut(now time.Duration) (next time.Duration) {
	left, next := e.lines.over(now)
	for kind, n := range left {
		if n > 0 {
			line := &logLines[kind]
			e.log.Log(e.base, line.level, "more lines of a kind were left out of the log", "line", line.text, "left_out", n)
		}
	}
	return next
}

// logPanicked tells of a handler that panicked, and where, if that is what err says or what asking it came to.
func (e *engine) logPanicked(r *run, s *settlement, err error) {
	var text, stack string
	crashed, ok := err.(*crash) //nolint:errorlint // as it was made: methods of a user's error are not called here
	switch {
	case ok && !crashed.told:
		crashed.told = true
		text, stack = crashed.Error(), crashed.stack
	case !ok && s.Failure != nil && s.Failure.Reason == driver.ReasonPanic:
		text, stack = s.Failure.Error, s.Failure.Stack
	default:
		return
	}
	e.logLine(e.base, logPanic, r.c, r.d, "attempt", r.d.Attempt, "error", cut(text, logText), "stack",
		cut(stack, logDeep))
}

// logOutcome tells of a failed message what became of it, when the broker has accepted that. Bodies stay out of it, and
// so does the error of a decoder, which may quote them.
func (c *consumer) logOutcome(ctx context.Context, n *notice) {
	d, f := n.r.d, n.failure
	switch {
	case f == nil:
	case n.outcome == driver.Retry:
		c.e.logLine(ctx, logRetry, c, d, "attempt", d.Attempt, "after", n.after, "reason", f.Reason, "error",
			cut(f.Error, logText))
	case n.outcome == driver.Dead && f.Reason == driver.ReasonInvalidMessage:
		c.e.logLine(ctx, logUndecoded, c, d, "content_type", d.ContentType, "bytes", len(d.Body))
	case n.outcome == driver.Dead:
		c.e.logLine(ctx, logDead, c, d, "reason", f.Reason, "attempt", d.Attempt, "error", cut(f.Error, logText))
	}
}

// cut returns text, or its beginning.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit] + "…"
}
