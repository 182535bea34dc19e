package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/ferrymq/ferry/internal/jsontime"
)

// benchResult is what ferry bench prints. Its JSON form is stable.
type benchResult struct {
	Broker      string `json:"broker"`
	Messages    int    `json:"messages"`
	Size        int    `json:"size"`
	Callers     int    `json:"callers"`
	Batch       int    `json:"batch"`
	Concurrency int    `json:"concurrency"`
	Keys        int    `json:"keys"`

	Publish stage `json:"publish"` // latency of each publish call
	Handle  stage `json:"handle"`  // from publish to handler; throughput of the whole way

	PerSecond float64 `json:"per_second"` // messages published, handled and acknowledged
	Repeats   int64   `json:"repeats"`    // deliveries beyond the first
}

// stage is one part of the way.
type stage struct {
	Elapsed   jsontime.Duration `json:"elapsed"`
	PerSecond float64           `json:"per_second"`
	P50       jsontime.Duration `json:"p50"`
	P95       jsontime.Duration `json:"p95"`
	P99       jsontime.Duration `json:"p99"`
	P999      jsontime.Duration `json:"p999"`
	Max       jsontime.Duration `json:"max"`
}

func (r *benchRun) result(callers []benchCaller, total time.Duration) *benchResult {
	calls, waits := newLatencies(), newLatencies()
	var published time.Duration
	for _, c := range callers {
		calls.Merge(c.calls)
		published = max(published, c.ended)
	}
	for i := range r.waits {
		record(waits, time.Duration(r.waits[i].Load()))
	}
	res := &benchResult{
		Broker: brokerName(r.broker), Messages: r.messages, Size: r.size, Callers: r.callers, Batch: r.batch,
		Concurrency: r.concurrency, Keys: r.keys, Repeats: r.repeats.Load(),
		Publish: newStage(calls, r.messages, published),
		Handle:  newStage(waits, r.messages, total),
	}
	res.PerSecond = res.Handle.PerSecond
	return res
}

func newLatencies() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, time.Hour.Nanoseconds(), 3)
}

func record(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(min(max(1, d.Nanoseconds()), h.HighestTrackableValue())) // cannot be out of range
}

func newStage(h *hdrhistogram.Histogram, messages int, elapsed time.Duration) stage {
	at := func(q float64) jsontime.Duration { return jsontime.Duration(h.ValueAtQuantile(q)) }
	return stage{
		Elapsed: jsontime.Duration(elapsed), PerSecond: float64(messages) / max(elapsed, 1).Seconds(),
		P50: at(50), P95: at(95), P99: at(99), P999: at(99.9), Max: jsontime.Duration(h.Max()),
	}
}

func (r *benchResult) print(w io.Writer, output string) error {
	if output == "json" {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	t := newTable("", "elapsed", "msg/s", "p50", "p95", "p99", "p99.9", "max")
	t.AppendRow(r.Publish.row("publish call"))
	t.AppendRow(r.Handle.row("publish to handle"))
	_, err := fmt.Fprintf(w, "%s  %s messages of %d B, %d callers, batch %d, concurrency %d, keys %d\n\n%s\n\n%s "+
		"messages/s published, handled and acknowledged, %d repeated\n",
		r.Broker, grouped(r.Messages), r.Size, r.Callers, r.Batch, r.Concurrency, r.Keys, t.Render(),
		grouped(int(r.PerSecond)), r.Repeats)
	return err
}

func (s stage) row(name string) []any {
	return []any{name, shortly(s.Elapsed), grouped(int(s.PerSecond)), shortly(s.P50), shortly(s.P95), shortly(s.P99),
		shortly(s.P999), shortly(s.Max)}
}

// grouped returns n with its thousands apart: 1,234,567.
func grouped(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
