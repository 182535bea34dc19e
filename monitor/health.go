package monitor

import (
	"fmt"
	"slices"
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
	// Dead is how many dead letters a group has, and Invalid how many parse errors a topic has. Each defaults to 1 and
	// never.
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
	if !l.ErrorRate.ordered() || !l.Age.ordered() || !l.Full.ordered() || !l.Growing.ordered() || !l.Dead.ordered() ||
		!l.Invalid.ordered() || !l.Memory.ordered() {
		return l, driver.NewError(ferry.ErrInvalid, "a limit of the monitor is unhealthy before it is degraded",
			"make Degraded the smaller of the two", nil)
	}
	if l.LongRunning < 0 || l.Overdue < 0 {
		return l, driver.NewError(ferry.ErrInvalid, "a time of the monitor's limits is negative",
			"leave it zero for the default", nil)
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
		h.add(Unhealthy, CodeUnreachable, About{Error: s.Err.Error()})
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
		h.add(Degraded, Code(found.Kind), found.about())
	}
	return h
}

func (h *Health) add(status Status, code Code, about About) {
	if status == Healthy {
		return
	}
	if status == Unhealthy || h.Status == Healthy {
		h.Status = status
	}
	h.Reasons = append(h.Reasons,
		Reason{Status: status, Code: code, About: about, Subject: about.subject(), Text: about.text(code)})
}

func (m *Monitor) judgeBackend(h *Health, u driver.Usage) {
	if u.MemoryLimit > 0 {
		used := float64(u.Memory) / float64(u.MemoryLimit)
		h.add(m.o.Limits.Memory.of(used), CodeMemory, About{Share: used})
	}
}

// judgeTopics tells which of the topics that were asked for do not exist: nothing is known of them, and that is not
// health.
func (m *Monitor) judgeTopics(h *Health, s *Snapshot) {
	if s.Err != nil {
		return // some were perhaps not looked at
	}
	for _, topic := range m.o.Topics {
		if !slices.ContainsFunc(s.Queues, func(q Queue) bool { return q.Topic == topic }) {
			h.add(Degraded, CodeNoTopic, About{Topic: topic})
		}
	}
}

func (m *Monitor) judgeQueue(h *Health, all []Queue, i int, readings map[queueName]reading) {
	l, q := m.o.Limits, &all[i]
	if q.Group == "" {
		h.add(l.Full.of(q.Full), CodeBound, About{Topic: q.Topic, Share: q.Full})
		h.add(l.Invalid.of(q.Invalid), CodeInvalid, About{Topic: q.Topic, Count: q.Invalid})
		return
	}
	h.add(l.Dead.of(q.Dead), CodeDead, About{Topic: q.Topic, Group: q.Group, Count: q.Dead})
	if q.Paused {
		return // somebody wants it to wait
	}
	if q.Ready > 0 && q.Consumers == 0 {
		h.add(Degraded, CodeNoConsumer,
			About{Topic: q.Topic, Group: q.Group, Count: q.Ready, Groups: usedInstead(all, i)})
	}
	h.add(l.Age.of(q.Oldest), CodeOld, About{Topic: q.Topic, Group: q.Group, Age: q.Oldest})
	growing := readings[queueName{q.Topic, q.Group}].growing
	h.add(l.Growing.of(int64(growing)), CodeGrowing,
		About{Topic: q.Topic, Group: q.Group, Count: q.backlog(), Looks: growing, PerSecond: q.Growth})
}

// usedInstead are the groups that consumers use, where the first publish made queue i and nobody ever asked for it.
func usedInstead(all []Queue, i int) []string {
	if q := &all[i]; q.Group != driver.DefaultGroup || !q.neverConsumed {
		return nil
	}
	return consumedBeside(all, i)
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
			h.add(Unhealthy, CodeReconnecting,
				About{Topic: state.Topic, Group: state.Group, Instance: s.Instance, Error: fmt.Sprint(state.Err)})
		}
	}
	for _, c := range s.Consumers {
		if c.Recent.Handled < m.o.Limits.MinHandled {
			continue
		}
		rate := c.Recent.ErrorRate()
		h.add(m.o.Limits.ErrorRate.of(rate), CodeFailing,
			About{Topic: c.Topic, Group: c.Group, Share: rate, Count: int64(c.Recent.Handled)})
	}
	if s.Zombies > 0 {
		h.add(Degraded, CodeZombies, About{Instance: s.Instance, Count: int64(s.Zombies)})
	}
}
