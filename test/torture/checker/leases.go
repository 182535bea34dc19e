package checker

import "fmt"

// checkLeases finds messages that arrived somewhere while somebody else surely held them: since the broker's time of
// the claim, or since an extension was asked for, for one lease.
func checkLeases(l *ledger, r *Report) {
	for _, c := range l.courses {
		for i := 1; i < len(c.leases); i++ {
			a, b := c.leases[i-1], c.leases[i]
			if l.gaveBack(c, a, b.At) || l.rewound(a.from, b.At) || l.handedOver(b) || l.stepped(a.from, b.At) ||
				l.diedWithBroker(a, b.At) {
				continue
			}
			until := max(a.claimedAt, a.extended) + int64(l.run.Lease)
			if early := until - b.At - l.early(a, b.At); early > clockSlack {
				r.violate(TwoLeases, c.ID, fmt.Sprintf("%s got it in group %s while %s held it for %v more",
					b.Process, c.group, a.Process, ns(early)))
			}
		}
	}
}

// diedWithBroker says that a lease ended before a time with the process that kept it: that of its holder, where the
// broker lives in it, or the server's.
func (l *ledger) diedWithBroker(h *lease, before int64) bool {
	return l.run.Owned && l.crashed(h.Process, before) || l.run.LeasesDie && l.serverCrashed(h.from, before)
}

// handedOver says that a partition went to another member, whose holder was told and did not finish in time. That it
// can settle nothing from then on is checked like for everybody.
func (l *ledger) handedOver(h *lease) bool { return l.run.Heartbeat > 0 && h.Cause == causeRebalance }

// gaveBack says that the holder of a lease may have let go of it before a time: by settling it, by returning the head
// of its key, or by closing.
func (l *ledger) gaveBack(c *course, h *lease, before int64) bool {
	for _, s := range h.settles {
		if s.possible() && s.called < before {
			return true
		}
	}
	if t := l.process(h.Process).closing; t > 0 && t < before {
		return true
	}
	return c.message.Key != "" && l.returnedKey(h, before)
}

// returnedKey says that the process returned another message of the same key, or lost its lease: both return those that
// it holds behind it.
func (l *ledger) returnedKey(h *lease, before int64) bool {
	if l.returned == nil {
		l.returned = l.keyReturns()
	}
	for _, t := range l.returned[keyReturn{h.Process, h.Topic, h.Group, h.Key}] {
		if t < before && t >= h.from {
			return true
		}
	}
	return false
}

type keyReturn struct{ process, topic, group, key string }

func (l *ledger) keyReturns() map[keyReturn][]int64 {
	all := map[keyReturn][]int64{}
	for _, c := range l.courses {
		if c.message.Key == "" {
			continue
		}
		for i, h := range c.leases {
			k := keyReturn{h.Process, h.Topic, h.Group, h.Key}
			for _, s := range h.settles {
				if s.returns() && s.possible() {
					all[k] = append(all[k], s.called)
				}
			}
			if i+1 < len(c.leases) && c.leases[i+1].Cause == causeLease {
				all[k] = append(all[k], c.leases[i+1].from)
			}
		}
	}
	return all
}

// checkStaleSettles finds settlements that were accepted although the message had a new holder, or twice.
func checkStaleSettles(l *ledger, r *Report) {
	for _, c := range l.courses {
		for i, h := range c.leases {
			accepted := 0
			for _, s := range h.settles {
				if !s.accepted() {
					continue
				}
				if accepted++; accepted == 2 {
					r.violate(StaleSettle, c.ID, fmt.Sprintf("lease %s in group %s was settled twice", h.Token, c.group))
				}
				for _, later := range c.leases[i+1:] {
					if later.At < s.called && !l.rewound(s.called, s.called) { // two servers at once, for a moment
						r.violate(StaleSettle, c.ID, fmt.Sprintf("%s of %s was accepted %v after %s had got it in group %s",
							s.outcome, h.Process, ns(s.called-later.At), later.Process, c.group))
						break
					}
				}
			}
		}
	}
}

// checkRedelivery measures how long messages of a killed process took to come again. Of one key only the first counts:
// those behind it wait for it, not for the broker.
func checkRedelivery(l *ledger, r *Report) {
	for _, crash := range l.crashes {
		heads := map[keyReturn]int64{}
		var held []*course
		for _, c := range l.courses {
			h, _ := c.heldAt(crash.Process, crash.At)
			if h == nil {
				continue
			}
			held = append(held, c)
			if k := (keyReturn{"", h.Topic, h.Group, h.Key}); h.Key != "" && (heads[k] == 0 || h.Seq < heads[k]) {
				heads[k] = h.Seq
			}
		}
		for _, c := range held {
			h, next := c.heldAt(crash.Process, crash.At)
			if h.Key != "" && heads[keyReturn{"", h.Topic, h.Group, h.Key}] != h.Seq {
				continue
			}
			if next == nil || next.Cause != causeLease || next.Deliveries != h.Deliveries+1 {
				continue
			}
			took := next.At - l.since(h, crash.At, next.At)
			r.redelivered = append(r.redelivered, took)
			limit := int64(l.run.Lease + l.run.RedeliverIn)
			if took > limit && !l.disturbed(crash.At, next.At) && !l.stepped(h.from, next.At) {
				r.violate(LateRedelivery, c.ID, fmt.Sprintf("came again in group %s %v after %s was killed, more than %v",
					c.group, ns(took), crash.Process, ns(limit)))
			}
		}
	}
}

// heldAt returns the lease that a process held at a time, and the one after it.
func (c *course) heldAt(process string, at int64) (held, next *lease) {
	for i, h := range c.leases {
		if h.Process != process || h.At > at || len(h.settles) > 0 {
			continue
		}
		if i+1 == len(c.leases) {
			return h, nil
		}
		if c.leases[i+1].At > at {
			return h, c.leases[i+1]
		}
	}
	return nil, nil
}

// disturbed says that some other fault than a crash was going on.
func (l *ledger) disturbed(from, to int64) bool {
	for _, s := range l.faults {
		if !s.crash && s.overlaps(from, to) {
			return true
		}
	}
	return false
}
