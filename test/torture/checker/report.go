package checker

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ferrymq/ferry/test/torture/history"
)

// Kind of violation.
type Kind string

// Kinds, in the order in which a verdict names them.
const (
	Lost           Kind = "lost"
	Phantom        Kind = "phantom"
	Corrupted      Kind = "corrupted"
	Unexplained    Kind = "unexplained duplicate"
	Duplicate      Kind = "duplicate"
	Order          Kind = "order"
	Early          Kind = "early"
	Expired        Kind = "expired but delivered"
	Attempts       Kind = "attempt count"
	Deliveries     Kind = "delivery count"
	TwoLeases      Kind = "two live leases"
	StaleSettle    Kind = "stale settle accepted"
	LateRedelivery Kind = "late redelivery"
	LateRecovery   Kind = "late recovery"
	Conservation   Kind = "conservation"
	Stuck          Kind = "stuck"
)

// Kinds returns all kinds of violation, in order.
func Kinds() []Kind {
	return []Kind{Lost, Phantom, Corrupted, Unexplained, Duplicate, Order, Early, Expired, Attempts, Deliveries,
		TwoLeases, StaleSettle, LateRedelivery, LateRecovery, Conservation, Stuck}
}

const (
	millisecond = int64(time.Millisecond)
	maxExamples = 5 // of each kind
	// clockSlack is how far the broker's wall clock may be corrected meanwhile. What counts by our own clock is stricter.
	clockSlack = 25 * millisecond
)

func ns(n int64) time.Duration { return time.Duration(n).Round(10 * time.Microsecond) }

// Violation is one broken promise.
type Violation struct {
	Kind Kind   `json:"kind"`
	ID   string `json:"id,omitempty"`
	Text string `json:"text"`
}

// Spread describes times.
type Spread struct {
	N   int           `json:"n"`
	P50 time.Duration `json:"p50"`
	P99 time.Duration `json:"p99"`
	Max time.Duration `json:"max"`
}

// Report is the verdict on one run.
type Report struct {
	Run *history.Run `json:"run"`
	OK  bool         `json:"ok"`

	Published int `json:"published"` // acknowledged
	Unknown   int `json:"unknown"`   // neither acknowledged nor refused
	Refused   int `json:"refused"`
	Delivered int `json:"delivered"` // starts of a handler
	Acked     int `json:"acked"`     // over all groups
	Dead      int `json:"dead"`
	Crashes   int `json:"crashes"`
	Faults    int `json:"faults"`              // crashes and stalls not counted
	Stalls    int `json:"stalls"`              // of the machine, which nobody asked for
	Stale     int `json:"stale"`               // settlements that were rightly refused
	Unwritten int `json:"unwritten,omitempty"` // crashes of a server that had not written what it acknowledged
	Forgotten int `json:"forgotten,omitempty"` // lost with a server at a level that does not survive it, over all groups

	// Duplicates are starts beyond the first of a message in a group, by cause.
	Duplicates map[string]int `json:"duplicates"`
	// Redelivery is the time from a kill to the next claim, Late how late delayed messages came.
	Redelivery Spread `json:"redelivery"`
	Late       Spread `json:"late"`
	// Unpublished and Undelivered are how long nobody could publish or receive because of a server's fault.
	Unpublished Spread `json:"unpublished"`
	Undelivered Spread `json:"undelivered"`

	// Violations counts by kind, Examples are the first few of each.
	Violations map[Kind]int `json:"violations"`
	Examples   []Violation  `json:"examples,omitempty"`

	late, redelivered, unpublished, undelivered []int64
}

func newReport(run *history.Run) *Report {
	return &Report{Run: run, Duplicates: map[string]int{}, Violations: map[Kind]int{}}
}

func (r *Report) violate(kind Kind, id, text string) {
	r.Violations[kind]++
	if r.Violations[kind] <= maxExamples {
		r.Examples = append(r.Examples, Violation{kind, id, text})
	}
}

func (r *Report) finish(l *ledger) {
	for _, m := range l.order {
		switch {
		case m.accepted > 0:
			r.Published++
		case m.maybe():
			r.Unknown++
		default:
			r.Refused++
		}
	}
	for _, c := range l.courses {
		switch s := c.settled(func(s *settlement) bool { return s.final() && s.possible() }); {
		case s == nil:
		case s.outcome == "ack":
			r.Acked++
		case s.outcome == "dead":
			r.Dead++
		}
		for _, h := range c.leases {
			for _, s := range h.settles {
				if !s.possible() {
					r.Stale++
				}
			}
		}
	}
	for _, f := range l.faults {
		switch {
		case f.crash:
			r.Crashes++
		case f.fault == history.Stall:
			r.Stalls++
		case f.fault == history.Unwritten:
			r.Unwritten++
		default:
			r.Faults++
		}
	}
	r.Late, r.Redelivery = spread(r.late), spread(r.redelivered)
	r.Unpublished, r.Undelivered = spread(r.unpublished), spread(r.undelivered)
	r.OK = len(r.Violations) == 0
}

func spread(ts []int64) Spread {
	if len(ts) == 0 {
		return Spread{}
	}
	slices.Sort(ts)
	at := func(q float64) time.Duration { return ns(ts[int(q*float64(len(ts)-1))]) }
	return Spread{N: len(ts), P50: at(0.5), P99: at(0.99), Max: at(1)}
}

// Verdict says it in words.
func (r *Report) Verdict() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, fault %s, seed %d: ", r.Run.Broker, r.Run.Fault, r.Run.Seed)
	if r.OK {
		b.WriteString("clean.")
	} else {
		b.WriteString("VIOLATED:")
		for _, k := range Kinds() {
			if n := r.Violations[k]; n > 0 {
				fmt.Fprintf(&b, " %d %s,", n, k)
			}
		}
	}
	fmt.Fprintf(&b, "\n  %d published (%d unknown, %d refused), %d handler starts, %d acked, %d dead; %d crashes, %d "+
		"other faults, %d stale settles refused",
		r.Published, r.Unknown, r.Refused, r.Delivered, r.Acked, r.Dead, r.Crashes, r.Faults, r.Stale)
	if r.Stalls > 0 {
		fmt.Fprintf(&b, ", %d stalls of the machine", r.Stalls)
	}
	b.WriteString("\n  duplicates: " + r.duplicates())
	if r.Redelivery.N > 0 {
		fmt.Fprintf(&b, "\n  kill to redelivery: p50 %v, max %v (lease %v, %d messages)", r.Redelivery.P50, r.Redelivery.Max,
			r.Run.Lease, r.Redelivery.N)
	}
	if r.Unpublished.N > 0 {
		fmt.Fprintf(&b, "\n  server faults: nobody could publish for p50 %v, max %v, nor receive for p50 %v, max %v (%d "+
			"faults)",
			r.Unpublished.P50, r.Unpublished.Max, r.Undelivered.P50, r.Undelivered.Max, r.Unpublished.N)
	}
	if r.Run.MayForget || r.Unwritten > 0 {
		fmt.Fprintf(&b, "\n  forgotten by servers, as this level allows: %d deliveries; %d servers were killed with "+
			"acknowledged writes not in their file", r.Forgotten, r.Unwritten)
	}
	if r.Late.N > 0 {
		fmt.Fprintf(&b, "\n  delayed messages late: p50 %v, p99 %v, max %v (%d messages)", r.Late.P50, r.Late.P99, r.Late.Max,
			r.Late.N)
	}
	for _, v := range r.Examples {
		fmt.Fprintf(&b, "\n  - %s: %s %s", v.Kind, v.ID, v.Text)
	}
	return b.String()
}

func (r *Report) duplicates() string {
	if len(r.Duplicates) == 0 {
		return "none"
	}
	var parts []string
	total := 0
	for _, cause := range slices.Sorted(maps.Keys(r.Duplicates)) {
		parts = append(parts, fmt.Sprintf("%d %s", r.Duplicates[cause], cause))
		total += r.Duplicates[cause]
	}
	return fmt.Sprintf("%s (%.2f %% of the starts)", strings.Join(parts, ", "), 100*float64(total)/float64(r.Delivered))
}
