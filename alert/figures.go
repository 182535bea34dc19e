package alert

import (
	"maps"
	"slices"

	"github.com/ferrymq/ferry/monitor"
)

// level is what a figure belongs to.
type level int

const (
	ofSystem level = iota
	ofTopic
	ofGroup
	ofBreaker

	levels // how many there are
)

// figure is a name that conditions may use.
type figure struct {
	level  level
	share  bool // from 0 to 1
	signed bool // may be less than 0
	told   bool // by processes, stores or sources, if there are any: the monitor does not know it
}

// breakerOpen is in how many processes a breaker is open.
const breakerOpen = "breaker_open"

// figures are all names that conditions may use, beside threshold, topic, group and breaker.
var figures = map[string]figure{
	// of a group
	"queue_depth": {level: ofGroup}, "ready": {level: ofGroup}, "processing_count": {level: ofGroup},
	"waiting":   {level: ofGroup},
	"dlq_count": {level: ofGroup}, "dlq_hour": {level: ofGroup}, "dlq_day": {level: ofGroup},
	"dlq_normal":     {level: ofGroup},
	"oldest_seconds": {level: ofGroup}, "consumers": {level: ofGroup}, "in_per_second": {level: ofGroup},
	"out_per_second": {level: ofGroup}, "growth": {level: ofGroup, signed: true}, "consumer_lag": {level: ofGroup},
	"rebalance_count": {level: ofGroup}, "handled": {level: ofGroup},
	"error_rate": {level: ofGroup, share: true}, "retry_rate": {level: ofGroup, share: true},
	"timeout_rate":        {level: ofGroup, share: true},
	"avg_processing_time": {level: ofGroup}, "p95_processing_time": {level: ofGroup},
	"p99_processing_time": {level: ofGroup},
	// of a topic
	"delay_count": {level: ofTopic}, "invalid_count": {level: ofTopic}, "full": {level: ofTopic, share: true},
	// of the system
	"redis_memory_usage": {share: true}, "cpu_usage": {share: true}, "memory_usage": {share: true},
	"host_cpu_usage": {share: true}, "dlq_total": {}, "depth_total": {}, "processes": {}, "broker_up": {}, "failures": {},
	// of a breaker
	breakerOpen: {level: ofBreaker, told: true},
	// of processes: their workers, spools, guards and recoveries
	"degraded_messages": {told: true}, "kafka_failures": {told: true}, "active_processors": {told: true},
	"emergency_writes": {told: true}, "dlq_unrecoverable": {told: true}, "dlq_unrecoverable_day": {told: true},
	"dlq_consumer_lag": {told: true}, "dlq_manual_review_pending": {told: true},
	"rate_limit_violations_hour": {told: true}, "users_blocked_hour": {told: true},
	"messages_denied_hour": {told: true},
	// of the guard store, and of who leads the recovery
	"blocked_users_current": {told: true}, "dlq_recovery_leaders": {told: true},
}

// Figures are the names that conditions may use, sorted. Beside them: threshold, topic, group, breaker.
func Figures() []string { return slices.Sorted(maps.Keys(figures)) }

// environment is what conditions are checked against.
func environment() map[string]any {
	env := map[string]any{"threshold": 0.0, "topic": "", "group": "", "breaker": ""}
	for name := range figures {
		env[name] = 0.0
	}
	return env
}

// subject is what a rule is evaluated for: a group of a topic, a topic, a breaker, or the whole system.
type subject struct {
	level        level
	topic, group string
	name         string // topic/group, topic, that of the breaker, or "system"
	values       map[string]any
}

// subjectsOf are what a look saw. Values of the system are among those of each.
func subjectsOf(f monitor.Figures, system map[string]any, g *guarded, c *counters) []subject {
	subjects := append([]subject{{level: ofSystem, name: "system", values: system}}, g.subjects(system)...)
	handlers := map[[2]string]*monitor.Handler{}
	for i := range f.Handlers {
		handlers[[2]string{f.Handlers[i].Topic, f.Handlers[i].Group}] = &f.Handlers[i]
	}
	partitions := partitionSums(f)
	topics := map[string]map[string]any{}
	for i := range f.Queues {
		q := &f.Queues[i]
		if q.Group == "" {
			values := with(system, map[string]any{"topic": q.Topic, "delay_count": float64(q.Delayed),
				"invalid_count": float64(q.Invalid), "full": q.Full})
			topics[q.Topic] = values
			subjects = append(subjects, subject{level: ofTopic, topic: q.Topic, name: q.Topic, values: values})
			continue
		}
		values := queueValues(q, c.of(q, f.At))
		handlerValues(values, handlers[[2]string{q.Topic, q.Group}])
		if sum, ok := partitions[[2]string{q.Topic, q.Group}]; ok {
			values["consumer_lag"], values["rebalance_count"] = sum.lag, c.moved(q, sum.moves, f.At)
		}
		subjects = append(subjects, subject{level: ofGroup, topic: q.Topic, group: q.Group, name: q.Topic + "/" + q.Group,
			values: with(topics[q.Topic], values)})
	}
	c.forget(f.At)
	return subjects
}

func with(base, more map[string]any) map[string]any {
	all := make(map[string]any, len(base)+len(more))
	maps.Copy(all, base)
	maps.Copy(all, more)
	return all
}

func systemValues(f monitor.Figures) map[string]any {
	v := map[string]any{"dlq_total": float64(f.Dead), "depth_total": float64(f.Ready + f.Inflight + f.Waiting),
		"processes": float64(len(f.Processes)), "broker_up": 1.0, "failures": float64(f.Failures.Count),
		"cpu_usage": f.Process.CPU, "host_cpu_usage": f.Host.CPU}
	if f.Queues == nil && f.Err != nil {
		v["broker_up"] = 0.0
	}
	share := func(name string, used, limit int64) {
		if limit > 0 { // otherwise it is not known
			v[name] = float64(used) / float64(limit)
		}
	}
	share("redis_memory_usage", f.Backend.Memory, f.Backend.MemoryLimit)
	share("memory_usage", f.Process.Memory, f.Process.MemoryLimit)
	return v
}

func queueValues(q *monitor.Queue, died increase) map[string]any {
	v := map[string]any{"topic": q.Topic, "group": q.Group,
		"queue_depth": float64(q.Ready + q.Inflight + q.Waiting), "ready": float64(q.Ready), "waiting": float64(q.Waiting),
		"processing_count": float64(q.Inflight), "dlq_count": float64(q.Dead), "oldest_seconds": q.Oldest.Seconds(),
		"consumers": float64(q.Consumers), "in_per_second": q.InPerSecond, "out_per_second": q.OutPerSecond,
		"growth":   q.Growth,
		"dlq_hour": died.hour, "dlq_day": died.day}
	if died.normalKnown {
		v["dlq_normal"] = died.normal
	}
	return v
}

// leastHandled is from how many messages on shares and times of handlers are judged: one of two is no rate.
const leastHandled = 20

func handlerValues(v map[string]any, h *monitor.Handler) {
	if h == nil {
		return
	}
	v["handled"] = float64(h.Handled)
	if h.Handled < leastHandled {
		return
	}
	q := h.Latency()
	v["error_rate"], v["retry_rate"], v["timeout_rate"] = h.ErrorRate(), h.RetryRate(), h.TimeoutRate()
	v["avg_processing_time"], v["p95_processing_time"], v["p99_processing_time"] = q.Mean.Seconds(), q.P95.Seconds(),
		q.P99.Seconds()
}

// partitionSum is what the partitions of a group are together.
type partitionSum struct {
	lag   float64
	moves uint64
}

func partitionSums(f monitor.Figures) map[[2]string]partitionSum {
	sums := map[[2]string]partitionSum{}
	for i := range f.Partitions {
		p := &f.Partitions[i]
		sum := sums[[2]string{p.Topic, p.Group}]
		sums[[2]string{p.Topic, p.Group}] = partitionSum{sum.lag + float64(p.Lag), sum.moves + p.Moves}
	}
	return sums
}
