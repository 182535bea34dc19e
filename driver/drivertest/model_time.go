package drivertest

import (
	"slices"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// advance lets time pass in the model: everything due, lost or expired until then happens, in the order of its time.
func (m *model) advance(to time.Time) {
	for {
		at, happen := m.nextEvent()
		if happen == nil || at.After(to) {
			break
		}
		m.now = at
		happen()
	}
	m.now = to
	m.dedups = slices.DeleteFunc(m.dedups, func(r remembered) bool { return !m.now.Before(r.until) })
}

// nextEvent finds what happens next.
func (m *model) nextEvent() (at time.Time, happen func()) {
	earlier := func(t time.Time, f func()) {
		if !t.IsZero() && (happen == nil || t.Before(at)) {
			at, happen = t, f
		}
	}
	for _, p := range m.pending {
		if !p.held {
			earlier(p.due, func() { m.removePending(p); m.fanOut(p) })
		}
		earlier(p.expires, func() { m.removePending(p); m.expired++ })
	}
	for _, g := range m.groups {
		for _, e := range g.entries {
			switch e.state {
			case driver.StateWaiting:
				earlier(e.due, func() { e.state = driver.StateReady })
				earlier(e.expires, func() { m.expireNow(g, e) })
			case driver.StateReady:
				earlier(e.expires, func() { m.expireNow(g, e) })
			case driver.StateInflight:
				earlier(e.lease, func() { m.loseLeases(g, e.lease) })
			}
		}
	}
	return at, happen
}

// loseLeases returns what was held until at: counted, and what its holder has of the same key behind it uncounted.
func (m *model) loseLeases(g *group, at time.Time) {
	var lost []*entry
	for _, e := range g.entries {
		if e.state == driver.StateInflight && e.lease.Equal(at) {
			e.state, e.holder = driver.StateReady, nil
			lost = append(lost, e)
		}
	}
	for _, e := range lost {
		if e.deliveries > 0 && (e.begun || !e.lost) {
			e.deliveries++
		}
		if e.begun {
			e.silent = append(e.silent, e.token)
			e.silent = e.silent[max(0, len(e.silent)-16):]
		}
		e.lost = true
		g.redelivered++
		e.loose = e.loose || e.Key == "" || g.order == driver.Relaxed
		m.returnTail(g, e, driver.CauseReleased, driver.CauseRebalance, driver.CauseLeaseExpired)
		m.back(g, e, driver.CauseLeaseExpired)
	}
}
