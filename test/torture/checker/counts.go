package checker

import (
	"fmt"
	"slices"

	"github.com/ferrymq/ferry/driver"
)

// checkAttempts compares the attempt of each delivery with the failures before it. A crash burns none, a failure one.
func checkAttempts(l *ledger, r *Report) {
	for _, c := range l.courses {
		var failed bounds
		for i, h := range c.leases {
			if i > 0 && (l.rewound(c.leases[0].from, h.At) || l.startsOver(c.leases[i-1])) {
				failed = bounds{0, int64(l.run.MaxAttempts)}
			}
			if !failed.holds(int64(h.Attempt - 1)) {
				r.violate(Attempts, c.ID, fmt.Sprintf("delivered to group %s as attempt %d after %d failures", c.group, h.Attempt,
					failed.most))
			}
			if l.run.MaxAttempts > 0 && h.Attempt > l.run.MaxAttempts {
				r.violate(Attempts, c.ID, fmt.Sprintf("attempt %d in group %s, more than %d", h.Attempt, c.group,
					l.run.MaxAttempts))
			}
			for _, s := range h.settles {
				if s.outcome == "retry" && s.possible() {
					failed.add(s.accepted())
				}
				checkDeath(l, r, c, h, s)
			}
		}
	}
}

// checkDeath finds messages that were buried before their attempts or deliveries were used up.
func checkDeath(l *ledger, r *Report, c *course, h *lease, s *settlement) {
	if s.outcome != "dead" || !s.possible() {
		return
	}
	switch driver.Reason(s.reason) {
	case driver.ReasonMaxAttempts, driver.ReasonPanic, driver.ReasonTimeout:
		if h.Attempt < l.run.MaxAttempts {
			r.violate(Attempts, c.ID, fmt.Sprintf("dead in group %s (%s) at attempt %d of %d", c.group, s.reason, h.Attempt,
				l.run.MaxAttempts))
		}
	case driver.ReasonMaxDeliveries:
		if !slices.ContainsFunc(c.leases, func(h *lease) bool { return len(h.starts) > 0 }) {
			r.violate(Deliveries, c.ID, fmt.Sprintf("dead in group %s (%s), and no handler ever saw it", c.group, s.reason))
		}
		if h.Deliveries < l.run.MaxDeliveries {
			r.violate(Attempts, c.ID, fmt.Sprintf("dead in group %s (%s) at delivery %d of %d", c.group, s.reason, h.Deliveries,
				l.run.MaxDeliveries))
		}
	default:
		r.violate(Attempts, c.ID, fmt.Sprintf("dead in group %s for the reason %q, which nothing here gives", c.group,
			s.reason))
	}
}

// checkDeliveries compares the count of each delivery with the losses before it.
func checkDeliveries(l *ledger, r *Report) {
	for _, c := range l.courses {
		for i, b := range c.leases {
			if i > 0 && l.rewound(c.leases[0].from, b.At) {
				continue
			}
			if count := l.deliveries(c, i); !count.holds(int64(b.Deliveries)) {
				r.violate(Deliveries, c.ID, fmt.Sprintf("delivery %d in group %s (%s), where %d to %d are right", b.Deliveries,
					c.group, b.Cause, count.least, count.most))
			}
		}
	}
}

// deliveries is what the i-th lease of a course may count: the first loss, whoever held the message, and of the later
// ones those whose handler was about to start and whose holder never spoke again. What is handed over or given back
// counts nothing.
func (l *ledger) deliveries(c *course, i int) bounds {
	at := c.leases[i].At
	count, first := bounds{1, 1}, false // whether the first loss has surely been counted
	for j, h := range c.leases[:i+1] {
		if h.Cause != causeLease || j > 0 && c.leases[j-1].begin == 0 && l.unseen(c, c.leases[j-1], h) {
			continue
		}
		var lost lease // zero: no history tells of it
		if j > 0 {
			lost = *c.leases[j-1]
		}
		sure := j == 0 || !l.uncommitted(&lost, lost.from) && !l.behind(c, &lost, h.At)
		switch {
		case count.most == 1:
			count.add(sure)
		case lost.begin > 0 || lost.begins():
			count.add(sure && first && lost.begins() && l.silent(&lost, at))
		}
		if sure && !first {
			count.least, first = max(count.least, 2), true
		}
	}
	// A claim that no history tells of may have been the first that was lost. It began nothing.
	if l.harmed(nil, c.message.At, at) && (count.most == 1 || c.leases[0].begin > 0) {
		count.most++
	}
	return count
}

// begins says that the start of its handler was surely recorded: no handler of what was lost before starts otherwise.
func (h *lease) begins() bool { return h.begun || h.Deliveries > 1 && len(h.starts) > 0 }

// behind says that a lease may have ended because that of a message before it in its key did: which is no loss of its
// own.
func (l *ledger) behind(c *course, h *lease, before int64) bool {
	return c.message.Key != "" && l.returnedKey(h, before)
}

// silent says that who lost a lease was killed before a time, and had said nothing about it after its begin.
func (l *ledger) silent(h *lease, before int64) bool {
	return l.crashed(h.Process, before) && len(h.settles) == 0
}

// checkCounters compares the broker's own counters with themselves, with the listing, and with the history.
func checkCounters(l *ledger, r *Report) {
	for _, e := range l.counters {
		t := e.Counters
		if t == nil || !l.run.Exact {
			continue
		}
		left := t.Fanned + uint64(t.Delayed) + uint64(t.Held) + t.Expired + t.Cancelled
		if t.Published != left {
			r.violate(Conservation, "", fmt.Sprintf("topic %s: published %d, accounted for %d", t.Topic, t.Published, left))
		}
		if b := l.published(t.Topic); !l.forgot(0, forever) && !b.holds(int64(t.Published)) {
			r.violate(Conservation, "", fmt.Sprintf("topic %s: the broker counts %d published, its producers %d to %d", t.Topic,
				t.Published, b.least, b.most))
		}
		if (t.Messages != 0 || t.Bytes != 0) && !l.wiped(0) { // otherwise a default group may have got them
			r.violate(Conservation, "", fmt.Sprintf("topic %s: %d messages and %d bytes left after the drain", t.Topic,
				t.Messages, t.Bytes))
		}
		for _, g := range t.Groups {
			if !l.wiped(0) || slices.Contains(l.run.Groups[t.Topic], g.Group) {
				checkGroup(l, r, t, g)
			}
		}
	}
}

func checkGroup(l *ledger, r *Report, t *driver.TopicStats, g driver.GroupStats) {
	complain := func(format string, args ...any) {
		r.violate(Conservation, "", fmt.Sprintf("topic %s group %s: ", t.Topic, g.Group)+fmt.Sprintf(format, args...))
	}
	left := g.Acked + g.Dropped + g.Expired + g.Cancelled + uint64(g.Ready+g.Inflight+g.Waiting+g.Dead)
	if g.Received != left {
		complain("received %d, accounted for %d", g.Received, left)
	}
	// it was there before the first publish
	if slices.Contains(l.run.Groups[t.Topic], g.Group) && g.Received != t.Fanned && !l.wiped(0) && !l.reset(0, forever) {
		complain("received %d of %d that became due", g.Received, t.Fanned)
	}
	for _, x := range []struct {
		state driver.State
		n     int64
	}{{driver.StateReady, g.Ready}, {driver.StateInflight, g.Inflight}, {driver.StateWaiting, g.Waiting},
		{driver.StateDead, g.Dead}} {
		if listed := l.present(t.Topic, g.Group, string(x.state)); listed != x.n {
			complain("counts %d %s, lists %d", x.n, x.state, listed)
		}
	}
	if l.rewound(0, forever) { // what was settled may have been settled again in another way
		return
	}
	for _, x := range []struct {
		outcome driver.Outcome
		n       int64
	}{{driver.Ack, int64(g.Acked)}, {driver.Dead, g.Dead}, {driver.Drop, int64(g.Dropped)}} {
		if b := l.outcomes(t.Topic, g.Group, x.outcome.String()); !b.holds(x.n) {
			complain("the broker counts %d of %s, its consumers %d to %d", x.n, x.outcome, b.least, b.most)
		}
	}
}
