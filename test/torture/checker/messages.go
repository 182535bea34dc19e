package checker

import "fmt"

// checkLost finds acknowledged messages that some group never got, or got and then forgot.
func checkLost(l *ledger, r *Report) {
	for _, m := range l.order {
		if m.accepted == 0 {
			continue
		}
		for _, group := range l.run.Groups[m.Topic] {
			p := pair{m.ID, group}
			if len(l.listed[p]) > 0 || len(l.listed[pair{m.ID, ""}]) > 0 {
				continue // the broker still has it: checkListing asks why
			}
			c := l.pairs[p]
			switch {
			case l.forgotten(m) && (c == nil || c.settled((*settlement).ended) == nil):
				r.Forgotten++
			case c == nil && m.TTL > 0: // may have expired: the counters must say so
			case c == nil:
				r.violate(Lost, m.ID, fmt.Sprintf("acknowledged to its producer, never delivered to group %s", group))
			case m.TTL > 0:
			case c.settled((*settlement).ended) == nil:
				r.violate(Lost, m.ID, fmt.Sprintf("delivered to group %s, never settled, and in no state any more", group))
			}
		}
	}
}

// checkContent finds deliveries of what nobody published, or of something else than was published.
func checkContent(l *ledger, r *Report) {
	for _, e := range l.strangers {
		r.violate(Phantom, e.ID, fmt.Sprintf("delivered to group %s from topic %s, never published there", e.Group, e.Topic))
	}
	for _, c := range l.courses {
		if c.accepted == 0 && !c.maybe() {
			r.violate(Phantom, c.ID, fmt.Sprintf("delivered to group %s although the broker refused it", c.group))
		}
		for _, h := range c.leases {
			if h.Hash != c.Hash || h.Key != c.message.Key || h.Seq != c.Seq {
				r.violate(Corrupted, c.ID, fmt.Sprintf("published as key %q seq %d hash %s, delivered as key %q seq %d hash %s",
					c.message.Key, c.Seq, c.Hash, h.Key, h.Seq, h.Hash))
			}
		}
	}
}

// checkExpired finds claims of messages whose time was over, by the broker's own clock.
func checkExpired(l *ledger, r *Report) {
	for _, c := range l.courses {
		if c.TTL == 0 {
			continue
		}
		for _, h := range c.leases {
			if late := h.ClaimedAt - h.PublishedAt - c.TTL; late > l.clockError() {
				r.violate(Expired, c.ID, fmt.Sprintf("delivered to group %s %v after it had expired", c.group, ns(late)))
			}
		}
	}
}

// checkEarly finds messages that arrived before they were due. Our clock judges: it started to count before the
// broker's did, and stopped after it, so that no doubt is left.
func checkEarly(l *ledger, r *Report) {
	for _, c := range l.courses {
		for i, h := range c.leases {
			if i == 0 {
				checkFirst(l, r, c, h)
				continue
			}
			for _, s := range c.leases[i-1].settles {
				if due := s.called + s.after; s.accepted() && s.returns() && h.At < due-millisecond && !l.stepped(s.called, h.At) {
					r.violate(Early, c.ID, fmt.Sprintf("%s after %v, but group %s got it %v too early",
						s.outcome, ns(s.after), c.group, ns(due-h.At)))
				}
			}
		}
	}
}

// checkFirst judges the first delivery of a message with a delay, or with a schedule, which is a time of the broker's.
func checkFirst(l *ledger, r *Report, c *course, h *lease) {
	due, slack := c.message.At+c.Delay, millisecond
	if c.Due > 0 {
		due, slack = c.Due+l.offset, l.clockError()
	}
	switch {
	case c.Delay == 0 && c.Due == 0 || l.stepped(c.message.At, h.At):
	case h.At < due-slack:
		r.violate(Early, c.ID, fmt.Sprintf("group %s got it %v too early", c.group, ns(due-h.At)))
	case h.Cause == causeFirst:
		r.late = append(r.late, max(0, h.At-due))
	}
}

// checkListing compares what the broker still has with what should be left: dead letters, and nothing else.
func checkListing(l *ledger, r *Report) {
	for p, states := range l.listed {
		m := l.messages[p.id]
		switch {
		case m == nil:
			r.violate(Phantom, p.id, fmt.Sprintf("listed as %s, never published", states[0]))
			continue
		case len(states) > 1:
			r.violate(Conservation, p.id, fmt.Sprintf("listed in %d states at once in group %s: %v", len(states), p.group,
				states))
		case states[0] != "dead":
			r.violate(Stuck, p.id, fmt.Sprintf("still %s in group %q after the drain", states[0], p.group))
			continue
		}
		c := l.pairs[p]
		if c == nil || c.settled(func(s *settlement) bool { return s.outcome == "dead" && s.possible() }) == nil {
			r.violate(Conservation, p.id, fmt.Sprintf("a dead letter of group %s that nobody buried", p.group))
		}
	}
	for _, c := range l.courses {
		dead := c.settled(func(s *settlement) bool { return s.outcome == "dead" && s.accepted() })
		if dead != nil && len(l.listed[c.pair]) == 0 && !l.rewound(c.leases[0].from, dead.called+forgetful) &&
			!l.wiped(dead.called) {
			r.violate(Lost, c.ID, fmt.Sprintf("a dead letter of group %s that is not there any more", c.group))
		}
	}
}

// present counts the listed entries of a group in one state.
func (l *ledger) present(topic, group, state string) int64 {
	var n int64
	for p, states := range l.listed {
		if m := l.messages[p.id]; p.group != group || m == nil || m.Topic != topic {
			continue
		}
		for _, s := range states {
			if s == state {
				n++
			}
		}
	}
	return n
}

// bounds of how often something happened: surely, and at most, where some answers are unknown.
type bounds struct{ least, most int64 }

func (b *bounds) add(sure bool) {
	b.most++
	if sure {
		b.least++
	}
}

func (b bounds) holds(n int64) bool { return n >= b.least && n <= b.most }

func (l *ledger) outcomes(topic, group, outcome string) bounds {
	var b bounds
	for _, c := range l.courses {
		if c.Topic != topic || c.group != group {
			continue
		}
		fits := func(s *settlement) bool { return s.outcome == outcome && s.possible() }
		if c.settled(fits) != nil {
			b.add(c.settled(func(s *settlement) bool { return fits(s) && s.accepted() }) != nil)
		}
	}
	return b
}

func (l *ledger) published(topic string) bounds {
	var b bounds
	for _, m := range l.order {
		if m.Topic == topic && (m.accepted > 0 || m.maybe()) {
			b.add(m.accepted > 0)
		}
	}
	return b
}
