package drivertest

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/ferrymq/ferry/driver"
)

// mayTake says why a member must not be given e now; an empty answer allows it.
func (m *model) mayTake(s *member, e *entry) string {
	g := s.g
	switch {
	case m.paused || g.paused:
		return "paused"
	case e.state != driver.StateReady:
		return "in state " + string(e.state)
	case s.holds() >= s.o.MaxInflight:
		return "beyond MaxInflight"
	}
	run := 0
	for _, x := range g.entries {
		switch {
		case x == e || x.Key != e.Key:
			continue
		case x.state == driver.StateInflight && e.Key != "":
			run++
		}
		why := x.unkeyedBars(s, e)
		if e.Key != "" {
			why = x.keyBars(s, e)
		}
		if why != "" {
			return why
		}
	}
	if run >= s.o.MaxRun {
		return "beyond MaxRun"
	}
	return ""
}

// before reports whether the contract says that x is ready and comes first.
func (x *entry) before(e *entry) bool {
	return x.state == driver.StateReady && x.place < e.place && !x.loose && !e.loose
}

// keyBars says why x bars a member from e, which has the same key.
func (x *entry) keyBars(s *member, e *entry) string {
	switch {
	case x.state == driver.StateInflight && (x.holder != s || x.claim != s.claims):
		return "while " + x.ID + " of the same key is held"
	case x.before(e):
		return "before " + x.ID + " of the same key"
	case x.state == driver.StateWaiting && x.place < e.place && s.g.order == driver.Strict:
		return "while " + x.ID + " of the same key waits"
	}
	return ""
}

// unkeyedBars says why x bars a member from e, where neither has a key.
func (x *entry) unkeyedBars(s *member, e *entry) string {
	switch {
	case x.Priority == e.Priority && x.before(e):
		return "before " + x.ID + " of the same lane"
	case s.o.StrictPriority && x.state == driver.StateReady && x.Priority > e.Priority:
		return "before " + x.ID + " of a higher lane"
	}
	return ""
}

// mustTake reports whether there is something that a member must be given now.
func (m *model) mustTake(s *member) bool {
	return slices.ContainsFunc(s.g.entries, func(e *entry) bool { return m.mayTake(s, e) == "" })
}

// take judges a delivery and notes it.
func (m *model) take(s *member, d *driver.Delivery) error {
	e := s.g.find(d.ID)
	if e == nil {
		return fmt.Errorf("%s was delivered, which group %s does not have", d.ID, s.g.name)
	}
	if why := m.mayTake(s, e); why != "" {
		return fmt.Errorf("%s was delivered %s", d.ID, why)
	}
	if !bytes.Equal(d.Body, e.Body) || d.Key != e.Key || d.Priority != e.Priority || d.ContentType != e.ContentType ||
		!maps.Equal(d.Headers, e.Headers) {
		return fmt.Errorf("%s was delivered changed: %+v, published %+v", d.ID, d.Message, e.Message)
	}
	if e.deliveries == 0 {
		e.deliveries = d.Deliveries
	}
	if d.Attempt != e.attempt || d.Deliveries != e.deliveries || !slices.Contains(e.causes, d.Cause) {
		return fmt.Errorf("%s was delivered with attempt %d, deliveries %d, cause %s; want %d, %d, one of %v",
			d.ID, d.Attempt, d.Deliveries, d.Cause, e.attempt, e.deliveries, e.causes)
	}
	e.state, e.holder, e.claim, e.token, e.lease = driver.StateInflight, s, s.claims, d.Token.String(),
		m.now.Add(s.o.Lease)
	e.begun, e.causes = false, []driver.Cause{d.Cause}
	if s.had == nil {
		s.had = map[string]bool{}
	}
	s.had[e.token] = true
	return nil
}

// stats returns what Stats must say. Bytes, Invalid and the age of the oldest are not modelled.
func (m *model) stats(consumers map[string]int) driver.TopicStats {
	st := driver.TopicStats{Topic: topic, Paused: m.paused, Published: m.published, Fanned: m.fanned, Expired: m.expired,
		Cancelled: m.cancelled}
	live := map[*message]bool{}
	for _, p := range m.pending {
		live[p] = true
		if p.held {
			st.Held++
		} else {
			st.Delayed++
		}
	}
	for _, g := range m.groups {
		gs := driver.GroupStats{Group: g.name, Order: g.order, Paused: g.paused, Consumers: consumers[g.name],
			Received: g.received,
			Acked:    g.acked, Dropped: g.dropped, Expired: g.expired, Cancelled: g.cancelled, Redelivered: g.redelivered,
			Retried: g.retried, Died: g.died}
		for _, e := range g.entries {
			switch e.state {
			case driver.StateReady:
				gs.Ready++
			case driver.StateInflight:
				gs.Inflight++
			case driver.StateWaiting:
				gs.Waiting++
			case driver.StateDead:
				gs.Dead++
				continue
			}
			live[e.message] = true
		}
		st.Groups = append(st.Groups, gs)
	}
	slices.SortFunc(st.Groups, func(a, b driver.GroupStats) int { return bytes.Compare([]byte(a.Group), []byte(b.Group)) })
	st.Messages = int64(len(live))
	return st
}
