package admin

import (
	"context"
	"time"

	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/internal/jsontime"
)

type showTotals struct {
	Span string `query:"span" enum:"5m,24h" default:"5m" doc:"How far back"`
}

// totalStep is longer than the time between two looks at every topic: each step has one of them.
const totalStep = 15 * time.Second

// showTotals tells the figures of all topics together, over time: those that whoever asks may see.
func (a *API) showTotals(ctx context.Context, in *showTotals) (api.Series, error) {
	span, step := secondsKept*time.Second, totalStep
	if in.Span == "24h" {
		span, step = 24*time.Hour, time.Minute
	}
	who := auth.From(ctx)
	out := api.Series{Span: in.Span, Every: step.String(), Lines: []api.Point{}}
	for _, p := range a.series.totals(time.Now().Add(-span), step,
		func(topic string) bool { return who.May(auth.View, topic) }) {
		out.Lines = append(out.Lines, viewPoint(p))
	}
	return out, nil
}

func viewPoint(p point) api.Point {
	return api.Point{At: jsontime.At(time.UnixMilli(p.at)), Ready: int64(p.ready), Dead: int64(p.dead),
		OldestSecond: float64(p.oldest), InPerSecond: float64(p.in), OutPerSecond: float64(p.out)}
}

// totals adds up the queues of the topics that are seen, step by step.
func (s *series) totals(since time.Time, step time.Duration, seen func(topic string) bool) []point {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := since.Truncate(step).Add(step) // the first whole one
	sums := make([]point, max(0, s.sampled.Sub(first)/step+1))
	for name, h := range s.queues {
		if !seen(name.topic) {
			continue
		}
		points := &h.seconds
		if step == time.Minute {
			points = &h.minutes
		}
		addSteps(sums, points.since(first.Add(-time.Millisecond)), first, step, name.group == "")
	}
	var found []point
	for _, p := range sums {
		if p.at != 0 {
			found = append(found, p)
		}
	}
	return found
}

// addSteps adds the last point of a queue within each step. What was published is counted by the topic as a whole:
// every group receives it again.
func addSteps(sums, points []point, first time.Time, step time.Duration, whole bool) {
	at := func(p point) int { return int((p.at - first.UnixMilli()) / step.Milliseconds()) }
	for i, p := range points {
		n := at(p)
		if n >= len(sums) || i+1 < len(points) && at(points[i+1]) == n {
			continue
		}
		sum := &sums[n]
		sum.at = first.Add(time.Duration(n) * step).UnixMilli()
		sum.ready, sum.dead, sum.out = sum.ready+p.ready, sum.dead+p.dead, sum.out+p.out
		sum.oldest = max(sum.oldest, p.oldest)
		if whole {
			sum.in += p.in
		}
	}
}
