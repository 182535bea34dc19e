package monitor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/worker"
)

// Status is a verdict in one word.
type Status string

// Statuses, from good to bad.
const (
	Healthy   Status = "healthy"
	Degraded  Status = "degraded"  // works, but somebody should look
	Unhealthy Status = "unhealthy" // does not do its job
)

// Health is a verdict with its reasons. It is as bad as the worst of them.
type Health struct {
	Status  Status
	Reasons []Reason
}

// Reason is one thing that is not as it should be.
type Reason struct {
	Status Status
	// Subject is what is meant: "broker", "topic orders", "group billing of topic orders".
	Subject string
	Text    string
}

// String returns the reason as a sentence.
func (r Reason) String() string { return r.Subject + ": " + r.Text }

// Level is where a number becomes bad, and where very bad.
type Level[T int64 | float64 | time.Duration] struct{ Degraded, Unhealthy T }

// Limits say what is bad. A zero one has its default; a level below zero is never reached.
type Limits struct {
	// ErrorRate is the share of handled messages that failed in the last minute. Defaults to 0.05 and 0.20. It is judged
	// from MinHandled messages on, which defaults to 20.
	ErrorRate  Level[float64]
	MinHandled uint64
	// Age is how long the oldest ready message has waited. Defaults to 1 and 10 minutes.
	Age Level[time.Duration]
	// Full is how much of a topic's bound is used. Defaults to 0.7 and 0.9.
	Full Level[float64]
	// Dead is how many dead letters a group has, and Invalid how many parse errors a topic has. Each defaults to 1 and never.
	Dead, Invalid Level[int64]
	// Memory is how much of its memory the backend uses, where it has a limit. Defaults to 0.8 and 0.95.
	Memory Level[float64]
	// Growing is for how many looks in a row a backlog has grown. Defaults to 6 and never.
	Growing Level[int64]
	// LongRunning is how long a handler may take before it is reported as stuck. Defaults to 10 minutes.
	LongRunning time.Duration
	// Overdue is how late a delayed or retried message may be before it is reported as stuck. Defaults to 1 minute.
	Overdue time.Duration
}

func (l Limits) resolved() (Limits, error) {
	if l.MinHandled == 0 {
		l.MinHandled = 20
	}
	l.ErrorRate = l.ErrorRate.or(0.05, 0.20)
	l.Age = l.Age.or(time.Minute, 10*time.Minute)
	l.Full = l.Full.or(0.7, 0.9)
	l.Growing = l.Growing.or(6, -1)
	l.Dead, l.Invalid = l.Dead.or(1, -1), l.Invalid.or(1, -1)
	l.Memory = l.Memory.or(0.8, 0.95)
	if l.LongRunning == 0 {
		l.LongRunning = 10 * time.Minute
	}
	if l.Overdue == 0 {
		l.Overdue = time.Minute
	}
	if !l.ErrorRate.ordered() || !l.Age.ordered() || !l.Full.ordered() || !l.Growing.ordered() || !l.Dead.ordered() || !l.Invalid.ordered() || !l.Memory.ordered() {
		return l, driver.NewError(ferry.ErrInvalid, "a limit of the monitor is unhealthy before it is degraded", "make Degraded the smaller of the two", nil)
	}
	if l.LongRunning < 0 || l.Overdue < 0 {
		return l, driver.NewError(ferry.ErrInvalid, "a time of the monitor's limits is negative", "leave it zero for the default", nil)
	}
	return l, nil
}

func (l Level[T]) or(degraded, unhealthy T) Level[T] {
	if l.Degraded == 0 {
		l.Degraded = degraded
	}
	if l.Unhealthy == 0 {
		l.Unhealthy = unhealthy
	}
	return l
}

func (l Level[T]) ordered() bool {
	return l.Unhealthy < 0 || l.Degraded < 0 || l.Degraded <= l.Unhealthy
}

// of judges a number.
func (l Level[T]) of(n T) Status {
	switch {
	case l.Unhealthy >= 0 && n >= l.Unhealthy:
		return Unhealthy
	case l.Degraded >= 0 && n >= l.Degraded:
		return Degraded
	}
	return Healthy
}

// judge turns a snapshot into a verdict.
func (m *Monitor) judge(s *Snapshot, readings map[queueName]reading) Health {
	h := Health{Status: Healthy}
	if s.Err != nil {
		h.add(Unhealthy, "broker", "not reachable: %v", s.Err)
	}
	m.judgeBackend(&h, s.Backend)
	m.judgeTopics(&h, s)
	for i := range s.Queues {
		m.judgeQueue(&h, s.Queues, i, readings)
	}
	for i, w := range m.o.Workers {
		m.judgeWorker(&h, w, s.Workers[i])
	}
	for _, found := range s.Stuck {
		h.add(Degraded, found.subject(), "%s", found.text())
	}
	return h
}

func (h *Health) add(status Status, subject, format string, args ...any) {
	if status == Healthy {
		return
	}
	if status == Unhealthy || h.Status == Healthy {
		h.Status = status
	}
	h.Reasons = append(h.Reasons, Reason{status, subject, fmt.Sprintf(format, args...)})
}

func (m *Monitor) judgeBackend(h *Health, u driver.Usage) {
	if u.MemoryLimit > 0 {
		used := float64(u.Memory) / float64(u.MemoryLimit)
		h.add(m.o.Limits.Memory.of(used), "broker", "%.0f %% of its memory is used", 100*used)
	}
}

// judgeTopics tells which of the topics that were asked for do not exist: nothing is known of them, and that is not health.
func (m *Monitor) judgeTopics(h *Health, s *Snapshot) {
	if s.Err != nil {
		return // some were perhaps not looked at
	}
	for _, topic := range m.o.Topics {
		if !slices.ContainsFunc(s.Queues, func(q Queue) bool { return q.Topic == topic }) {
			h.add(Degraded, "topic "+topic, "it does not exist: nothing was ever published to it, or its name is misspelt")
		}
	}
}

func (m *Monitor) judgeQueue(h *Health, all []Queue, i int, readings map[queueName]reading) {
	l, q := m.o.Limits, &all[i]
	if q.Group == "" {
		h.add(l.Full.of(q.Full), "topic "+q.Topic, "%.0f %% of its bound is used", 100*q.Full)
		h.add(l.Invalid.of(q.Invalid), "topic "+q.Topic, "%d messages could not be decoded", q.Invalid)
		return
	}
	subject := fmt.Sprintf("group %s of topic %s", q.Group, q.Topic)
	h.add(l.Dead.of(q.Dead), subject, "it has %d dead letters", q.Dead)
	if q.Paused {
		return // somebody wants it to wait
	}
	if q.Ready > 0 && q.Consumers == 0 {
		h.add(Degraded, subject, "%d messages wait and nothing consumes them%s", q.Ready, whyUnconsumed(all, i))
	}
	h.add(l.Age.of(q.Oldest), subject, "the oldest message has waited %v", q.Oldest.Round(time.Second))
	growing := readings[queueName{q.Topic, q.Group}].growing
	h.add(l.Growing.of(int64(growing)), subject, "the backlog of %d has grown for %d looks in a row, by %.1f/s now", q.backlog(), growing, q.Growth)
}

// whyUnconsumed tells of a group that nobody asked for: the first publish made it, and consumers use others.
func whyUnconsumed(all []Queue, i int) string {
	q := &all[i]
	if q.Group != driver.DefaultGroup || !q.neverConsumed {
		return ""
	}
	others := consumedBeside(all, i)
	if len(others) == 0 {
		return ""
	}
	return ": the first publish made this group, and consumers use " + strings.Join(others, ", ") + "; consume it, or remove it"
}

// consumedBeside are the other groups of the topic of queue i that have consumers. The queues of a topic lie together.
func consumedBeside(all []Queue, i int) []string {
	first := i
	for first > 0 && all[first-1].Topic == all[i].Topic {
		first--
	}
	var names []string
	for j := first; j < len(all) && all[j].Topic == all[i].Topic; j++ {
		if j != i && all[j].Consumers > 0 {
			names = append(names, all[j].Group)
		}
	}
	return names
}

func (m *Monitor) judgeWorker(h *Health, w *worker.Worker, s worker.Stats) {
	for _, state := range w.Health() {
		if state.State == worker.Reconnecting {
			h.add(Unhealthy, fmt.Sprintf("group %s of topic %s", state.Group, state.Topic), "worker %s has lost the broker: %v", s.Instance, state.Err)
		}
	}
	for _, c := range s.Consumers {
		if c.Recent.Handled < m.o.Limits.MinHandled {
			continue
		}
		rate := c.Recent.ErrorRate()
		h.add(m.o.Limits.ErrorRate.of(rate), fmt.Sprintf("group %s of topic %s", c.Group, c.Topic),
			"%.0f %% of %d messages failed in the last minute", 100*rate, c.Recent.Handled)
	}
	if s.Zombies > 0 {
		h.add(Degraded, "worker "+s.Instance, "%d handlers go on although their message was given up", s.Zombies)
	}
}
