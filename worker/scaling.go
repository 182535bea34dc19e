package worker

import (
	"fmt"
	"math"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// Scaling lets the number of handlers that run at once follow the load. It grows at once and shrinks slowly, so that a
// load that comes and goes does not make it swing.
type Scaling struct {
	// Min and Max bound how many handlers run at once, over all topics. Without a Max nothing scales. Min defaults to 1.
	Min, Max int
	// Policy says how many handlers a load needs. Defaults to ByDepth.
	Policy func(Load) int
	// Interval is the time between two looks at the load. Defaults to 1 second.
	Interval time.Duration
	// StepUp and StepDown are the most handlers one look adds or takes away. Default to Max, and to a quarter of the
	// way from Max to Min.
	StepUp, StepDown int
	// Cooldown is how long fewer handlers must have been enough before some are taken away. Defaults to 30 seconds.
	Cooldown time.Duration
}

// Load is what a scaling policy decides on.
type Load struct {
	// Min, Max and Current are numbers of handlers, and Running how many of them are at work.
	Min, Max, Current, Running int
	// Depth is how many due messages wait for a handler, in the broker and here. The broker is asked only while every
	// handler is busy: one that is idle would take what waits.
	Depth int64
	// Oldest is how long the oldest of them has waited in the broker.
	Oldest time.Duration
	// Busy is how many handlers were at work on average since the last look, or are now if that is more.
	Busy float64
	// HandlerTime is how long handlers took on average in the last minute.
	HandlerTime time.Duration
}

// longWait is what ByDepth takes for too long a wait.
const longWait = 5 * time.Second

// ByDepth is the default policy: Min handlers for up to 10 waiting messages, two more for up to 50, half way to Max for
// up to 100, and Max for more. Few messages that wait long, or that will at the pace of the handlers, count as well,
// and handlers that are in use are kept, with some to spare.
func ByDepth(l Load) int {
	var n int
	switch {
	case l.Depth <= 10:
		n = l.Min
	case l.Depth <= 50:
		n = l.Min + 2
	case l.Depth <= 100:
		n = (l.Min + l.Max + 1) / 2
	default:
		n = l.Max
	}
	ahead := time.Duration(l.Depth) * l.HandlerTime / time.Duration(max(l.Current, 1))
	if l.Depth > 0 && max(l.Oldest, ahead) >= longWait {
		n = max(n, l.Current+max(1, (l.Max-l.Min)/4))
	}
	return max(n, min(l.Current, int(math.Ceil(l.Busy*1.25))))
}

func (s Scaling) on() bool { return s.Max != 0 }

func (s Scaling) check(start int) []error {
	var errs []error
	bad := func(text, hint string) { errs = append(errs, driver.NewError(ferry.ErrInvalid, text, hint, nil)) }
	switch {
	case s.Min < 0 || s.Max < 0 || s.StepUp < 0 || s.StepDown < 0 || s.Interval < 0 || s.Cooldown < 0:
		bad("a number of Scaling is negative", "leave it zero for the default")
	case !s.on() && (s.Min != 0 || s.Policy != nil):
		bad("Scaling has no Max", "say how many handlers there may be at most")
	case s.on() && s.Min > s.Max:
		bad(fmt.Sprintf("Scaling.Min %d is above Scaling.Max %d", s.Min, s.Max), "swap them")
	case s.on() && start != 0 && (start > s.Max || start < s.Min):
		bad(fmt.Sprintf("Concurrency %d is not between Scaling.Min %d and Scaling.Max %d", start, s.Min, s.Max),
			"leave Concurrency out to begin with Min")
	}
	return errs
}

func (s Scaling) withDefaults() Scaling {
	if !s.on() {
		return s
	}
	s.Min = max(s.Min, 1)
	if s.Policy == nil {
		s.Policy = ByDepth
	}
	if s.Interval == 0 {
		s.Interval = time.Second
	}
	if s.StepUp == 0 {
		s.StepUp = s.Max
	}
	if s.StepDown == 0 {
		s.StepDown = max(1, (s.Max-s.Min)/4)
	}
	if s.Cooldown == 0 {
		s.Cooldown = 30 * time.Second
	}
	return s
}
