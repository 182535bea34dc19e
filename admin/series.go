package admin

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/admin/internal/input"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/jsontime"
	"github.com/ferrymq/ferry/monitor"
)

// Bounds of what is remembered.
const (
	sampleAll     = 10 * time.Second // between two looks at every topic
	sampleWatched = time.Second      // between two looks at a topic that somebody watches
	watchFor      = 30 * time.Second // after somebody looked
	mostWatched   = 50               // topics
	mostQueues    = 2000             // groups of all topics whose figures are remembered

	secondsKept = 300  // five minutes, at a point a second
	minutesKept = 1440 // a day
)

type queueName struct{ topic, group string }

// series remembers figures of queues over time, for charts: five minutes second by second, as far as somebody watches,
// and a day minute by minute.
type series struct {
	mu      sync.Mutex
	queues  map[queueName]*history
	watched map[string]time.Time // topics, until when
	sampled time.Time            // when every topic was looked at last
	status  monitor.Status
	out     time.Time // when something was last seen to leave a queue
}

// history is what is remembered of one queue.
type history struct {
	queue   api.Queue // as it was seen last
	last    reading
	seconds ring
	minutes ring
}

// reading are the counters of a queue at a moment, from which rates are reckoned.
type reading struct {
	at      time.Time
	in, out uint64
}

// point is a queue at a moment. It is small, because there are many.
type point struct {
	at              int64 // milliseconds
	ready, dead     int32
	in, out, oldest float32
}

// ring keeps the newest points.
type ring struct {
	points []point
	next   int
}

func (r *ring) add(p point, most int) {
	if len(r.points) < most {
		r.points = append(r.points, p)
		return
	}
	r.points[r.next] = p
	r.next = (r.next + 1) % most
}

// since returns the points after a time, oldest first.
func (r *ring) since(at time.Time) []point {
	all := slices.Concat(r.points[r.next:], r.points[:r.next])
	i := slices.IndexFunc(all, func(p point) bool { return p.at > at.UnixMilli() })
	if i < 0 {
		return nil
	}
	return all[i:]
}

func newSeries() *series {
	return &series{queues: map[queueName]*history{}, watched: map[string]time.Time{}, status: monitor.Healthy}
}

// watch has a topic looked at more often for a while.
func (s *series) watch(topic string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.watched[topic]; known || len(s.watched) < mostWatched {
		s.watched[topic] = now.Add(watchFor)
	}
}

// watchedNow returns the topics that somebody watches, and forgets the others.
func (s *series) watchedNow(now time.Time) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.watched, func(_ string, until time.Time) bool { return !now.Before(until) })
	return slices.Collect(maps.Keys(s.watched))
}

// lastOut is when something was last seen to leave a queue; zero: never.
func (s *series) lastOut() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out
}

// addAll remembers a look at every topic. Queues that are gone are forgotten.
func (s *series) addAll(f monitor.Figures) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sampled, s.status = f.At, f.Health.Status
	if f.Err != nil {
		return // what is missing is not gone
	}
	seen := map[queueName]bool{}
	for _, q := range f.Queues {
		seen[queueName{q.Topic, q.Group}] = true
		s.add(f.At, q)
	}
	maps.DeleteFunc(s.queues, func(n queueName, _ *history) bool { return !seen[n] })
}

// addTopic remembers a look at one topic.
func (s *series) addTopic(at time.Time, queues []monitor.Queue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range queues {
		s.add(at, q)
	}
}

func (s *series) add(at time.Time, q monitor.Queue) {
	name := queueName{q.Topic, q.Group}
	h := s.queues[name]
	if h == nil {
		if len(s.queues) >= mostQueues {
			return
		}
		h = &history{}
		s.queues[name] = h
	}
	now := reading{at: at, in: q.In, out: q.In - uint64(q.Ready+q.Inflight+q.Waiting+q.Dead)}
	if q.Group == "" {
		now.out = 0 // what belongs to the topic as a whole is not handled
	}
	if now.out > h.last.out && !h.last.at.IsZero() {
		s.out = at
	}
	h.add(now, q)
}

func (h *history) add(now reading, q monitor.Queue) {
	h.queue = viewQueue(q)
	h.queue.InPerSecond, h.queue.OutPerSecond = now.since(h.last)
	p := point{at: now.at.UnixMilli(), ready: int32(min(q.Ready, 1<<31-1)), dead: int32(min(q.Dead, 1<<31-1)),
		in: float32(h.queue.InPerSecond), out: float32(h.queue.OutPerSecond), oldest: float32(q.Oldest.Seconds())}
	h.seconds.add(p, secondsKept)
	if h.last.at.IsZero() || !now.at.Truncate(time.Minute).Equal(h.last.at.Truncate(time.Minute)) {
		h.minutes.add(p, minutesKept)
	}
	h.last = now
}

// since returns the rates since an earlier reading.
func (r reading) since(before reading) (in, out float64) {
	seconds := r.at.Sub(before.at).Seconds()
	if before.at.IsZero() || seconds <= 0 {
		return 0, 0
	}
	return max(0, float64(int64(r.in-before.in))/seconds), max(0, float64(int64(r.out-before.out))/seconds)
}

func viewQueue(q monitor.Queue) api.Queue {
	return api.Queue{Topic: q.Topic, Group: q.Group, Paused: q.Paused, Consumers: q.Consumers, Ready: q.Ready,
		Inflight: q.Inflight, Waiting: q.Waiting, Dead: q.Dead,
		Delayed: q.Delayed, Held: q.Held, Invalid: q.Invalid, Oldest: api.Duration(q.Oldest), InPerSecond: q.InPerSecond,
		OutPerSecond: q.OutPerSecond, Full: q.Full}
}

// sample looks at the topics until ctx ends.
func (a *API) sample(ctx context.Context) {
	tick := time.NewTicker(sampleWatched)
	defer tick.Stop()
	for {
		if a.series.stale(time.Now()) {
			a.sampleAll(ctx)
		} else {
			a.sampleWatched(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// stale reports whether every topic should be looked at again.
func (s *series) stale(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Sub(s.sampled) >= sampleAll
}

func (a *API) sampleAll(ctx context.Context) { a.series.addAll(a.collector.Collect(ctx)) }

func (a *API) sampleWatched(ctx context.Context) {
	for _, topic := range a.series.watchedNow(time.Now()) {
		if s, err := a.driver.Stats(ctx, topic); err == nil { // otherwise the next look at all tells
			a.series.addTopic(time.Now(), queuesOf(s))
		}
	}
}

func queuesOf(s driver.TopicStats) []monitor.Queue {
	queues := []monitor.Queue{{Topic: s.Topic, Paused: s.Paused, Delayed: s.Delayed, Held: s.Held, Invalid: s.Invalid,
		In: s.Published}}
	for _, g := range s.Groups {
		queues = append(queues, monitor.Queue{Topic: s.Topic, Group: g.Group, Paused: s.Paused || g.Paused,
			Consumers: g.Consumers,
			Ready:     g.Ready, Inflight: g.Inflight, Waiting: g.Waiting, Dead: g.Dead, Oldest: g.Oldest, In: g.Received})
	}
	return queues
}

// figures returns what was last seen of one topic, or of every topic that whoever asks may see.
func (a *API) figures(ctx context.Context, topic string) api.Figures {
	if a.series.older(2 * sampleAll) { // nobody runs the API
		a.sampleAll(ctx)
	}
	who := auth.From(ctx)
	f := a.series.latest(topic)
	f.Queues = slices.DeleteFunc(f.Queues, func(q api.Queue) bool { return !who.May(auth.View, q.Topic) })
	return f
}

func (s *series) older(than time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.sampled) >= than
}

// latest returns what was last seen of a topic, or of all, in order of names.
func (s *series) latest(topic string) api.Figures {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := api.Figures{Status: string(s.status), Queues: []api.Queue{}, At: jsontime.At(s.sampled)}
	for n, h := range s.queues {
		if topic == "" || n.topic == topic {
			f.Queues = append(f.Queues, h.queue)
			if h.last.at.After(f.At.Time) {
				f.At = jsontime.At(h.last.at)
			}
		}
	}
	slices.SortFunc(f.Queues, compareQueues)
	return f
}

func compareQueues(x, y api.Queue) int {
	switch {
	case x.Topic < y.Topic, x.Topic == y.Topic && x.Group < y.Group:
		return -1
	case x.Topic == y.Topic && x.Group == y.Group:
		return 0
	}
	return 1
}

type showFigures struct {
	Topic string `query:"topic" doc:"One topic; every one by default" maxLength:"128"`
}

func (a *API) showFigures(ctx context.Context, in *showFigures) (api.Figures, error) {
	if in.Topic != "" {
		a.series.watch(in.Topic, time.Now())
	}
	return a.figures(ctx, in.Topic), nil
}

type showSeries struct {
	input.TopicPath
	Group string `query:"group" doc:"One group; the topic as a whole by default" maxLength:"128"`
	Span  string `query:"span" enum:"5m,24h" default:"5m" doc:"How far back"`
}

// showSeries tells the figures of a queue over time. Asking has the topic looked at every second for a while.
func (a *API) showSeries(ctx context.Context, in *showSeries) (api.Series, error) {
	if _, err := a.stats(ctx, in.Topic); err != nil {
		return api.Series{}, err
	}
	now := time.Now()
	a.series.watch(in.Topic, now)
	out := api.Series{Topic: in.Topic, Group: in.Group, Span: in.Span, Every: "1s", Lines: []api.Point{}}
	span := secondsKept * time.Second
	if in.Span == "24h" {
		out.Every, span = "1m", 24*time.Hour
	}
	for _, p := range a.series.points(queueName{in.Topic, in.Group}, in.Span == "24h", now.Add(-span)) {
		out.Lines = append(out.Lines, viewPoint(p))
	}
	return out, nil
}

func (s *series) points(name queueName, minutes bool, since time.Time) []point {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.queues[name]
	switch {
	case h == nil:
		return nil
	case minutes:
		return h.minutes.since(since)
	}
	return h.seconds.since(since)
}
