package worker

import (
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Recent is what happened in the last minute.
type Recent struct {
	// Span is how much of the minute is measured: less after a start.
	Span time.Duration
	// Handled counts messages whose handler returned or was given up. Failed of them failed, among them Timeouts,
	// Panics and those that could not be decoded (ParseErrors); Retried will be tried again.
	Handled, Failed, Retried, Timeouts, Panics, ParseErrors uint64
	// PerSecond is Handled per second.
	PerSecond float64
	// Latency is how long handlers took, and Wait how long messages of a first attempt waited for one after they were due.
	Latency, Wait Quantiles
	// Latencies and Waits are what those were reckoned from.
	Latencies, Waits Histogram
}

// ErrorRate is the share of handled messages that failed, from 0 to 1.
func (r Recent) ErrorRate() float64 {
	if r.Handled == 0 {
		return 0
	}
	return float64(r.Failed) / float64(r.Handled)
}

// Quantiles tell how durations are spread. They are exact to about an eighth.
type Quantiles struct {
	Mean, P50, P95, P99, Max time.Duration
}

const (
	windows    = 6
	windowSpan = 10 * time.Second
)

// recent counts by windows, of which the oldest is used again. Guarded by engine.mu.
type recent struct {
	windows [windows]window
	current *window
	until   time.Duration // when current is over
	last    time.Duration // when a handler last returned; zero: never

	latency, wait histogram // since the engine began
}

// window is what happened in windowSpan.
type window struct {
	number                                                  int64 // since the engine began, from 1; zero: unused
	handled, failed, retried, timeouts, panics, parseErrors uint64
	took                                                    time.Duration
	latency, wait                                           histogram
}

// at moves on to the window of now.
func (r *recent) at(now time.Duration) *window {
	r.last = now
	if now >= r.until || r.current == nil {
		number := int64(now/windowSpan) + 1
		r.current = &r.windows[number%windows]
		*r.current = window{number: number}
		r.until = time.Duration(number) * windowSpan
	}
	return r.current
}

// done counts a run of n messages.
func (r *recent) done(now, took time.Duration, n int) {
	w := r.at(now)
	w.handled += uint64(n)
	w.took += took
	w.latency.add(took)
	r.latency.add(took)
}

// waited counts how long a message waited for its handler. Only first attempts tell: later ones waited on purpose.
func (r *recent) waited(d *driver.Delivery, here, now time.Duration) {
	if d.Attempt > 1 || d.Cause != driver.CauseFirst || d.PublishedAt.IsZero() || d.ClaimedAt.IsZero() {
		return
	}
	due := d.PublishedAt.Add(d.Delay)
	if !d.At.IsZero() && d.At.After(due) {
		due = d.At
	}
	waited := max(0, d.ClaimedAt.Sub(due)) + here
	r.at(now).wait.add(waited)
	r.wait.add(waited)
}

// outcome counts how a run ended.
func (r *recent) outcome(s *settlement) {
	if r.current == nil || s.Outcome != driver.Retry && s.Outcome != driver.Dead {
		return
	}
	w := r.current
	w.failed++
	if s.Outcome == driver.Retry {
		w.retried++
	}
	if s.Failure == nil {
		return
	}
	switch s.Failure.Reason {
	case driver.ReasonTimeout:
		w.timeouts++
	case driver.ReasonPanic:
		w.panics++
	case driver.ReasonInvalidMessage:
		w.parseErrors++
	}
}

// sum adds up the windows that are not older than a minute.
func (r *recent) sum(now time.Duration) window {
	var total window
	oldest := int64(now/windowSpan) + 1 - windows
	for i := range r.windows {
		w := &r.windows[i]
		if w.number == 0 || w.number <= oldest {
			continue
		}
		total.handled += w.handled
		total.failed += w.failed
		total.retried += w.retried
		total.timeouts += w.timeouts
		total.panics += w.panics
		total.parseErrors += w.parseErrors
		total.took += w.took
		total.latency.merge(&w.latency)
		total.wait.merge(&w.wait)
	}
	return total
}

func (r *recent) report(now time.Duration) Recent {
	w := r.sum(now)
	out := Recent{
		Span:    min(now, (windows-1)*windowSpan+now%windowSpan),
		Handled: w.handled, Failed: w.failed, Retried: w.retried,
		Timeouts: w.timeouts, Panics: w.panics, ParseErrors: w.parseErrors,
		Latencies: w.latency.report(), Waits: w.wait.report(),
	}
	out.Latency, out.Wait = out.Latencies.Quantiles(), out.Waits.Quantiles()
	if out.Span > 0 {
		out.PerSecond = float64(w.handled) / out.Span.Seconds()
	}
	return out
}
