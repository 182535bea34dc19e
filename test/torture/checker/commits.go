package checker

import (
	"fmt"
	"slices"
	"time"

	"github.com/ferrymq/ferry/test/torture/history"
)

// What the checker counts by causes of its own: a message that was stored twice, and one whose end was not committed.
const (
	causeCopy        = "copy"
	causeUncommitted = "uncommitted"
)

// uncommitted says that what a holder did at a time was perhaps never committed, because it died, or was cut off,
// before the next commit, or had been made to leave its group by a reset and did not know it yet. Where each step is
// stored at once (CommitIn is 0) there is no such moment.
func (l *ledger) uncommitted(h *lease, at int64) bool {
	return l.run.CommitIn > 0 && (l.harmed(h, at, at+int64(l.run.CommitIn)) ||
		l.during(history.Reset, at, at))
}

// lastKnown returns the leases before the i-th of which each may be the last that the broker knew of: the last one that
// was surely committed, and those after it.
func (l *ledger) lastKnown(c *course, i int) []*lease {
	first := max(0, i-1)
	for first > 0 && l.uncommitted(c.leases[first], c.leases[first].from) {
		first--
	}
	return c.leases[first:i]
}

// startsOver says that a message was done, and that this was perhaps not committed: it comes again as a new one.
func (l *ledger) startsOver(h *lease) bool {
	return slices.ContainsFunc(h.settles, func(s *settlement) bool { return s.ended() && l.uncommitted(h, s.called) })
}

// clockError is how far the broker's clock may be from what the driver takes it for.
func (l *ledger) clockError() int64 { return max(clockSlack, int64(l.run.ClockError)) }

// early is how much earlier than its lease a message may go to others: nothing, but where a lease is of a partition and
// its holder was not heard of.
func (l *ledger) early(h *lease, at int64) int64 {
	switch {
	case l.run.Heartbeat == 0 || !l.harmed(h, h.from, at):
		return 0
	case l.crashed(h.Process, at): // nobody is there who could be taken by surprise
		return int64(l.run.Lease)
	}
	return int64(l.run.Heartbeat)
}

// since returns from when on the time to a redelivery counts: a group waits for each member that died meanwhile, and
// where leases are of single messages one that died after this lease was over may have had the message next, uncounted,
// and told nobody.
func (l *ledger) since(h *lease, crash, next int64) int64 {
	from := max(h.claimedAt, h.extended) + int64(l.run.Lease)
	if l.run.Heartbeat > 0 {
		from = 0
	}
	for _, other := range l.crashes {
		if other.At >= from && other.At < next && !l.process(other.Process).publishes {
			crash = max(crash, other.At)
		}
	}
	return crash
}

// splitCopies gives each stored copy of a message a course of its own. A message that waits for its time is stored
// again when that has come, and the place where it waited is left after that: who dies in between repeats it.
func (l *ledger) splitCopies(r *Report) {
	if l.run.CommitIn == 0 {
		return
	}
	for _, c := range l.courses { // those that are added need no splitting
		kept := c.leases[:1:1]
		copies := map[string]*course{}
		for _, h := range c.leases[1:] {
			if h.Ref == kept[0].Ref {
				kept = append(kept, h)
				continue
			}
			if copies[h.Ref] == nil {
				copies[h.Ref] = &course{pair: c.pair, message: c.message}
				l.courses = append(l.courses, copies[h.Ref])
				l.judgeCopy(r, c, h)
			}
			copies[h.Ref].leases = append(copies[h.Ref].leases, h)
		}
		c.leases = kept
	}
}

// during says that a fault of that name was going on meanwhile.
func (l *ledger) during(fault string, from, to int64) bool {
	return slices.ContainsFunc(l.faults, func(s span) bool { return s.fault == fault && s.overlaps(from, to) })
}

func (l *ledger) judgeCopy(r *Report, c *course, h *lease) {
	r.Duplicates[causeCopy]++
	switch {
	case c.message.unknown && l.during(history.FillBroker, c.message.At, h.from): // it says that it failed, and has it
	case c.Delay == 0 && c.Due == 0:
		r.violate(Unexplained, c.ID, fmt.Sprintf("stored twice, at %s and %s, although it waited for nothing",
			c.leases[0].Ref, h.Ref))
	case !l.harmed(nil, c.message.At, h.from):
		r.violate(Unexplained, c.ID, fmt.Sprintf("stored twice, at %s and %s, although nobody died who moved it",
			c.leases[0].Ref, h.Ref))
	case l.run.NoDuplicates && !l.stalled(c.message.At, h.from) && !l.killedIn(c.message.At, h.from):
		r.violate(Duplicate, c.ID, fmt.Sprintf("stored twice in a run that promises none, %v apart",
			time.Duration(h.from-c.leases[0].from)))
	}
}

// killedIn says that a process was killed meanwhile. Producers move what is delayed too.
func (l *ledger) killedIn(from, to int64) bool {
	return slices.ContainsFunc(l.crashes, func(e history.Event) bool { return e.At >= from && e.At <= to })
}
