package checker

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ferrymq/ferry/test/torture/history"
)

// checkOrder finds messages of one key that overtook each other. Only messages that became ready in publish order
// count: without a delay, and each acknowledged before the next was published.
func checkOrder(l *ledger, r *Report) {
	type lane struct{ topic, key string }
	lanes := map[lane][]*message{}
	for _, m := range l.order {
		if m.Key != "" && m.Delay == 0 && m.Due == 0 {
			k := lane{m.Topic, m.Key}
			lanes[k] = append(lanes[k], m)
		}
	}
	for k, ms := range lanes {
		slices.SortFunc(ms, func(a, b *message) int { return cmp.Compare(a.Seq, b.Seq) })
		for _, group := range l.run.Groups[k.topic] {
			checkLane(l, r, group, ms)
		}
	}
}

// checkLane walks one key of one group. No message may start before the settle of the one ahead of it was called: by
// anybody, or, in the process that held both, queued there when its handler returned. And the last starts are in order:
// what a crash made come again comes again in order.
func checkLane(l *ledger, r *Report, group string, ms []*message) {
	var ahead, latest *message
	var last int64 // the last start of latest, the highest so far
	for i, m := range ms {
		c := l.pairs[pair{m.ID, group}]
		s := l.started(c)
		switch {
		case s == nil:
		case ahead != nil && (l.forgot(ahead.At, s.last) || l.reset(ahead.At,
			s.last)): // no order is promised where writes were lost
		case ahead != nil && s.first < l.pairs[pair{ahead.ID, group}].letGo(l.run, s.process):
			r.violate(Order, m.ID, fmt.Sprintf("seq %d of key %s started in group %s before seq %d was settled", m.Seq, m.Key,
				group, ahead.Seq))
		case s.last < last && !l.forgot(s.last, last) && !l.reset(s.last, last):
			r.violate(Order, m.ID, fmt.Sprintf("seq %d of key %s started in group %s, and seq %d once more after it", m.Seq,
				m.Key, group, latest.Seq))
		}
		if s != nil && s.last > last {
			latest, last = m, s.last
		}
		if m.accepted > 0 && m.TTL == 0 && (i+1 == len(ms) || m.before(ms[i+1])) {
			ahead = m
		}
	}
}

// before says that the broker was told of m before it was told of n: by an earlier call, or in the same one.
func (m *message) before(n *message) bool {
	together := m.Called > 0 && m.Called == n.Called && m.calls == 1 && n.calls == 1
	return m.accepted < n.At || together
}

// starts are the first and the last start of the handler, and the process of the first.
type starts struct {
	first, last int64
	process     string
}

// started returns the starts of a course, nil if there are none. A start after a fault took the lease away is left out:
// no order is promised for a holder that outlives its lease.
func (l *ledger) started(c *course) *starts {
	if c == nil {
		return nil
	}
	var s *starts
	for i, h := range c.leases {
		for _, t := range h.starts {
			if i+1 < len(c.leases) && c.leases[i+1].At < t && l.harmed(h, h.from, t) {
				continue
			}
			if s == nil {
				s = &starts{first: t, last: t, process: h.Process}
			}
			if t < s.first {
				s.first, s.process = t, h.Process
			}
			s.last = max(s.last, t)
		}
	}
	return s
}

// letGo returns when the followers of a message were free to start in a process, for ever if never.
func (c *course) letGo(run *history.Run, process string) int64 {
	if c == nil {
		return 0 // lost, or still listed: not a question of order
	}
	at := int64(forever)
	for _, h := range c.leases {
		if h.Process == process && h.handled > 0 && (h.succeeded || h.Attempt >= run.MaxAttempts) {
			at = min(at, h.handled)
		}
		for _, s := range h.settles {
			if s.final() && s.possible() {
				at = min(at, s.called)
			}
		}
	}
	return at
}
