package worker

import (
	"math/bits"
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
	r.at(now).wait.add(max(0, d.ClaimedAt.Sub(due)) + here)
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
		Latency: w.latency.quantiles(), Wait: w.wait.quantiles(),
	}
	if out.Span > 0 {
		out.PerSecond = float64(w.handled) / out.Span.Seconds()
	}
	return out
}

// histogram counts durations in buckets that grow with them, four to each doubling, from a microsecond to days.
type histogram struct {
	buckets [152]uint32
	n       uint64
	sum     time.Duration
	max     time.Duration
}

// bucketOf is the bucket of a duration: 0 to 3 microseconds have one each, and every doubling after that has four.
func bucketOf(d time.Duration) int {
	us := uint64(d / time.Microsecond)
	if us < 4 {
		return int(us)
	}
	exp := bits.Len64(us) - 1
	return min((exp-1)*4+int(us>>(exp-2)&3), len(histogram{}.buckets)-1)
}

// middleOf is a duration in the middle of a bucket.
func middleOf(bucket int) time.Duration {
	if bucket < 4 {
		return time.Duration(bucket)*time.Microsecond + time.Microsecond/2
	}
	exp := bucket/4 + 1
	width := uint64(1) << (exp - 2)
	low := (4 + uint64(bucket%4)) * width
	return time.Duration(low+width/2) * time.Microsecond
}

func (h *histogram) add(d time.Duration) {
	d = max(d, 0)
	h.buckets[bucketOf(d)]++
	h.n++
	h.sum += d
	h.max = max(h.max, d)
}

func (h *histogram) merge(o *histogram) {
	if o.n == 0 {
		return
	}
	for i, n := range o.buckets {
		h.buckets[i] += n
	}
	h.n += o.n
	h.sum += o.sum
	h.max = max(h.max, o.max)
}

func (h *histogram) quantiles() Quantiles {
	if h.n == 0 {
		return Quantiles{}
	}
	return Quantiles{Mean: h.sum / time.Duration(h.n), P50: h.quantile(0.50), P95: h.quantile(0.95), P99: h.quantile(0.99), Max: h.max}
}

func (h *histogram) quantile(q float64) time.Duration {
	rank := uint64(q * float64(h.n))
	var seen uint64
	for i, n := range h.buckets {
		if seen += uint64(n); seen > rank {
			return min(middleOf(i), h.max)
		}
	}
	return h.max
}
