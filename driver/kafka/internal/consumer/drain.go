package consumer

import (
	"context"
	"slices"

	"github.com/ferrymq/ferry/driver"
)

// Drain ends receiving. When no subscription of this process receives any more, the partitions of which it holds
// nothing go to other members, and each of the others as soon as its last message is settled; see passOn, which is
// called every 200 ms.
func (s *subscription) Drain(context.Context) error {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.drained = true
	s.m.wakeAll()
	return nil
}

// receives says why nothing can be received any more, or nil.
func (s *subscription) receives() error {
	switch {
	case s.closed:
		return driver.NewError(driver.ErrClosed, "the subscription is closed", "subscribe again", nil)
	case s.drained:
		return driver.NewError(driver.ErrClosed, "the subscription is drained",
			"settle what is held and close it; subscribe again to receive", nil)
	}
	return nil
}

// keeps is what the group is told with each join: which partitions we hold messages of, if we drain.
func (m *member) keeps() (kept []int32, draining bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept = nil
	if !m.draining {
		return nil, false
	}
	for id, p := range m.parts {
		if p.leased > 0 {
			m.kept = append(m.kept, id)
		}
	}
	slices.Sort(m.kept) // the same list for the same partitions: others would be a reason to rebalance
	return slices.Clone(m.kept), true
}

// passOn joins the group again when this process begins to drain, or receives again because somebody subscribes, and
// when nothing is held any more of a partition that the group was told we keep.
func (m *member) passOn() {
	m.mu.Lock()
	draining := m.draining || len(m.subs) > 0 // without any it leaves the group
	for s := range m.subs {
		draining = draining && s.drained
	}
	settled := draining && slices.ContainsFunc(m.kept,
		func(id int32) bool { return m.parts[id] == nil || m.parts[id].leased == 0 })
	rejoin := settled || draining != m.draining
	m.draining = draining
	if rejoin {
		m.kept = nil // asked for once; the join tells what is left
	}
	m.mu.Unlock()
	if rejoin {
		m.cl.ForceRebalance()
	}
}
