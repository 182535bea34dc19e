package cluster

import (
	"fmt"
	"time"

	"github.com/ferrymq/ferry/monitor"
)

// ScalePolicy says when a group should have more instances, and when fewer. Each field that is zero has its default.
type ScalePolicy struct {
	// Min and Max bound the number of instances. Default to 2 and 10.
	Min, Max int
	// Out has what is too much: more instances are advised when two of it are exceeded. Defaults to a CPU of 0.8, a depth
	// of 1000, a handler time of 5 s and an oldest message of a minute.
	Out ScaleLimits
	// In has what is little: fewer are advised when all of it holds. Defaults to 0.3, 100, 1 s and 10 s. That it lies far
	// below Out keeps the number from swinging.
	In ScaleLimits
	// MaxErrorRate is from when on more instances are no help: what fails would fail more often. Defaults to 0.2.
	MaxErrorRate float64
	// Cooldown is how long after a change nothing is advised. Defaults to 5 minutes.
	Cooldown time.Duration
	// Load is what a queue does not tell: see LoadOf.
	Load ScaleLoad
}

// ScaleLimits are limits of a load.
type ScaleLimits struct {
	CPU         float64 // 0 to 1
	Depth       int64
	HandlerTime time.Duration
	Oldest      time.Duration
}

// ScaleLoad is what the instances of a group tell. Zero is not known.
type ScaleLoad struct {
	// Instances is how many there are. Defaults to the consumers that the broker counts.
	Instances int
	// CPU is how busy their processors are on average, from 0 to 1.
	CPU float64
	// HandlerTime is how long handlers take on average, and ErrorRate which share of them fails.
	HandlerTime time.Duration
	ErrorRate   float64
	// SinceChange is how long ago their number changed.
	SinceChange time.Duration
}

// Verdict is what an advice comes to.
type Verdict string

// Verdicts.
const (
	ScaleOut  Verdict = "scale_out"
	ScaleIn   Verdict = "scale_in"
	ScaleNone Verdict = "none"
)

// Advice is how many instances a group needs, and why.
type Advice struct {
	Verdict Verdict
	// Instances is how many there should be, and Current how many there are.
	Instances, Current int
	// Reasons are for people.
	Reasons []string
}

// LoadOf sums up what members tell of one group: how many have a handler for it, how busy these are, how long those
// take and how many fail, by how many messages each handles.
func LoadOf(all []Info, topic, group string) ScaleLoad {
	var l ScaleLoad
	var weight, took, failed, cpu float64
	for _, i := range all {
		has := false
		for _, w := range i.Workers {
			for _, h := range w.Handlers {
				if h.Topic != topic || h.Group != group {
					continue
				}
				has = true
				weight += h.PerSecond
				took += h.PerSecond * float64(h.Mean)
				failed += h.PerSecond * h.ErrorRate
			}
		}
		if has {
			l.Instances++
			cpu += i.CPU
		}
	}
	if l.Instances > 0 {
		l.CPU = cpu / float64(l.Instances)
	}
	if weight > 0 {
		l.HandlerTime, l.ErrorRate = time.Duration(took/weight), failed/weight
	}
	return l
}

// Advise says how many instances a group needs, by what waits for it and what its instances tell: half as many more
// when two things are too much, one fewer when all is little. It asks nobody and changes nothing; whoever follows it
// says in ScaleLoad.SinceChange when that was.
func Advise(q monitor.Queue, p ScalePolicy) Advice {
	p = p.resolve()
	l := p.Load
	if l.Instances == 0 {
		l.Instances = q.Consumers
	}
	a := Advice{Verdict: ScaleNone, Instances: l.Instances, Current: l.Instances}
	much := p.much(q, l)
	little := len(much) == 0 && p.little(q, l)
	switch n := l.Instances; {
	case n < p.Min:
		return a.to(p.Min, fmt.Sprintf("%d instances are fewer than %d", n, p.Min))
	case n > p.Max:
		return a.to(p.Max, fmt.Sprintf("%d instances are more than %d", n, p.Max))
	case q.Paused:
		return a.to(n, "the group is paused")
	case len(much) < 2 && !little:
		return a.to(n, append(much, "that is neither too much nor little")...)
	case l.SinceChange > 0 && l.SinceChange < p.Cooldown:
		return a.to(n, append(much, fmt.Sprintf("their number changed %v ago; nothing is advised for %v",
			l.SinceChange, p.Cooldown))...)
	case little && n == p.Min:
		return a.to(n, "little waits, and there are as few as there may be")
	case little:
		return a.to(n-1, p.why(q, l))
	case l.ErrorRate > p.MaxErrorRate:
		return a.to(n, append(much, fmt.Sprintf("%.0f%% of the messages fail: more instances would not help",
			100*l.ErrorRate))...)
	case n == p.Max:
		return a.to(n, append(much, "there are as many instances as there may be")...)
	default:
		return a.to(min(p.Max, n+max(1, n/2)), much...)
	}
}

// to advises n instances.
func (a Advice) to(n int, reasons ...string) Advice {
	a.Instances, a.Reasons = n, reasons
	switch {
	case n > a.Current:
		a.Verdict = ScaleOut
	case n < a.Current:
		a.Verdict = ScaleIn
	}
	return a
}

// much returns what is too much.
func (p ScalePolicy) much(q monitor.Queue, l ScaleLoad) (reasons []string) {
	add := func(yes bool, format string, args ...any) {
		if yes {
			reasons = append(reasons, fmt.Sprintf(format, args...))
		}
	}
	add(l.CPU > p.Out.CPU, "a CPU of %.0f%% is above %.0f%%", 100*l.CPU, 100*p.Out.CPU)
	add(q.Ready > p.Out.Depth, "%d messages wait, more than %d", q.Ready, p.Out.Depth)
	add(l.HandlerTime > p.Out.HandlerTime, "handlers take %v, longer than %v", l.HandlerTime, p.Out.HandlerTime)
	add(q.Oldest > p.Out.Oldest, "the oldest message has waited for %v, longer than %v", q.Oldest, p.Out.Oldest)
	return reasons
}

func (p ScalePolicy) little(q monitor.Queue, l ScaleLoad) bool {
	return l.CPU < p.In.CPU && q.Ready < p.In.Depth && l.HandlerTime < p.In.HandlerTime && q.Oldest < p.In.Oldest
}

// why says what is little.
func (p ScalePolicy) why(q monitor.Queue, l ScaleLoad) string {
	return fmt.Sprintf("all is little: %d messages wait, the oldest for %v, handlers take %v, CPU %.0f%%", q.Ready,
		q.Oldest, l.HandlerTime, 100*l.CPU)
}

func (p ScalePolicy) resolve() ScalePolicy {
	if p.Min <= 0 {
		p.Min = 2
	}
	if p.Max <= 0 {
		p.Max = 10
	}
	p.Max = max(p.Min, p.Max)
	p.Out = p.Out.or(ScaleLimits{CPU: 0.8, Depth: 1000, HandlerTime: 5 * time.Second, Oldest: time.Minute})
	p.In = p.In.or(ScaleLimits{CPU: 0.3, Depth: 100, HandlerTime: time.Second, Oldest: 10 * time.Second})
	if p.MaxErrorRate <= 0 {
		p.MaxErrorRate = 0.2
	}
	if p.Cooldown <= 0 {
		p.Cooldown = 5 * time.Minute
	}
	return p
}

func (s ScaleLimits) or(d ScaleLimits) ScaleLimits {
	if s.CPU > 0 {
		d.CPU = s.CPU
	}
	if s.Depth > 0 {
		d.Depth = s.Depth
	}
	if s.HandlerTime > 0 {
		d.HandlerTime = s.HandlerTime
	}
	if s.Oldest > 0 {
		d.Oldest = s.Oldest
	}
	return d
}
