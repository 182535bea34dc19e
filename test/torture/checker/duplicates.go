package checker

import (
	"fmt"
	"slices"

	"github.com/ferrymq/ferry/test/torture/history"
)

// Causes of a delivery that the checker looks at, as driver.Cause names them.
const (
	causeFirst     = "first"
	causeRetry     = "retry"
	causeLease     = "lease_expired"
	causeReleased  = "released"
	causeRebalance = "rebalance"
	causeReplay    = "replay"
	causeFailover  = "failover"
)

// checkDuplicates counts deliveries beyond the first by cause, and finds those whose cause the history does not bear
// out.
func checkDuplicates(l *ledger, r *Report) {
	for _, c := range l.courses {
		attempt := 0 // that was started last
		for i, h := range c.leases {
			if h.claims > 1 {
				r.violate(Unexplained, c.ID, fmt.Sprintf("Receive returned lease %s of group %s %d times", h.Token, c.group,
					h.claims))
			}
			if len(h.starts) > 1 {
				r.violate(Unexplained, c.ID, fmt.Sprintf("the handler of lease %s of group %s started %d times", h.Token, c.group,
					len(h.starts)))
			}
			if why := l.unexplained(c, i); why != "" {
				r.violate(Unexplained, c.ID, fmt.Sprintf("delivered to group %s as %q, but %s", c.group, h.Cause, why))
			}
			if len(h.starts) == 0 {
				continue
			}
			r.Delivered++
			if attempt > 0 {
				cause := h.Cause
				switch {
				case cause == causeReplay:
				case c.leases[i-1].finished() || cause == causeFirst:
					cause = causeFailover // which the server itself does not know of
					if l.run.CommitIn > 0 {
						cause = causeUncommitted
					}
				case h.Attempt > attempt: // given back in between, perhaps: it is a retry all the same
					cause = causeRetry
				}
				r.Duplicates[cause]++
				if l.run.NoDuplicates && cause != causeRetry && !l.stalled(c.leases[i-1].from, h.At) {
					r.violate(Duplicate, c.ID, fmt.Sprintf("handled again in group %s as %q in a run that promises none", c.group,
						h.Cause))
				}
			}
			attempt = h.Attempt
		}
	}
}

// unexplained returns what contradicts the cause of the i-th lease of a course, or nothing.
func (l *ledger) unexplained(c *course, i int) string {
	b := c.leases[i]
	from := c.message.At
	var a *lease
	if i > 0 {
		a = c.leases[i-1]
		from = a.from
		if l.rewound(from, b.At) {
			return ""
		}
		for _, s := range a.settles {
			if s.final() && s.accepted() && s.called < b.At && !l.uncommitted(a, s.called) {
				return fmt.Sprintf("%s had settled it as %s", a.Process, s.outcome)
			}
		}
		if l.unseen(c, a, b) {
			return ""
		}
	}
	switch b.Cause {
	case causeFirst:
		if a != nil && !l.uncommitted(a, a.from) {
			return a.Process + " had got it before"
		}
	case causeRetry:
		if c.settled(func(s *settlement) bool { return s.outcome == "retry" && s.possible() && s.called < b.At }) == nil {
			return "no handler had failed"
		}
	case causeLease:
		if a != nil && l.gaveBack(c, a, b.At) {
			a = nil // somebody else had it after that
		}
		if !l.harmed(a, from, b.At) {
			return "its holder was well and had not let go"
		}
	case causeReleased:
		known := l.lastKnown(c, i)
		if len(known) > 0 {
			from = known[0].from
		}
		if !slices.ContainsFunc(known, func(a *lease) bool { return l.gaveBack(c, a, b.At) }) && !l.closedIn(from, b.At) {
			return "nobody had given it back"
		}
	case causeRebalance:
		if l.run.Heartbeat == 0 {
			return "there is nothing that could be rebalanced"
		}
	case causeReplay:
		if !l.reset(0, b.At) {
			return "nobody replayed it"
		}
	case causeFailover:
		return "the backend was never failed over"
	default:
		return "there is no such cause"
	}
	return ""
}

// unseen says that lease a was given back before a handler saw the message, so that b may come as a did.
func (l *ledger) unseen(c *course, a, b *lease) bool {
	return len(a.starts) == 0 && a.Cause == b.Cause && l.gaveBack(c, a, b.At)
}

// harmed says that a fault explains a lost lease: of its holder, or of anybody where the history cannot know the
// holder, because it died between the claim and its first line about it.
func (l *ledger) harmed(a *lease, from, to int64) bool {
	for _, s := range l.faults {
		if (a == nil || s.process == "" || s.process == a.Process) && s.overlaps(from, to) {
			return true
		}
	}
	return false
}

// stalled says that the machine itself stood still meanwhile, which no promise survives.
func (l *ledger) stalled(from, to int64) bool { return l.during(history.Stall, from, to) }

// closedIn says that some process closed meanwhile: it gives back also what it has claimed and nobody has seen.
func (l *ledger) closedIn(from, to int64) bool {
	for _, t := range l.closes {
		if t >= from && t <= to {
			return true
		}
	}
	return false
}
