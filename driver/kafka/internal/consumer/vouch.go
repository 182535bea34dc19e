package consumer

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
)

// A process that is stopped or cut off for longer than its session is no member any more, and learns of it a moment
// after it goes on. In that moment it must neither hand out nor settle what is with others. So it asks the coordinator
// itself: an answer to a question says that nobody else gets its partitions for one session from when the question was
// sent. While the group rebalances that is not all: who has not joined again when the time for it is over is removed,
// however often it asks. That time began after the last answer that knew of no rebalance.

// vouched reports whether the partitions are surely still ours.
func (m *member) vouched(now time.Time) bool { return now.Before(m.sure) }

// keepVouched asks until the member leaves.
func (m *member) keepVouched(ctx context.Context) {
	m.unsure.Rounds(ctx, func() time.Duration {
		next := time.Now().Add(m.d.cluster.Settings.Session / 6)
		m.vouch(ctx)
		return time.Until(next)
	})
}

func (m *member) vouch(ctx context.Context) {
	old := m.Known().ID
	now, _ := m.cl.GroupMetadata()
	switch {
	case old == "": // nobody has heard of us yet
	case now != old:
		// Whoever is told that it is no member joins anew, under another id. That may have been said by a coordinator that
		// was replaced, and did not know it yet: at the next one the group waits for the old member while it is heard of.
		m.Disown()
		_ = m.d.cluster.Remove(ctx, m.d.cluster.GroupID(m.topic.Name, m.group), old) // again with the next tick
	case m.askVouched(ctx) != nil:
		m.NoteGeneration(m.cl) // a rebalance may have brought another one
		if errors.Is(m.askVouched(ctx), kerr.UnknownMemberID) {
			m.Disown()
		}
	}
}

// keepLooking lets our clients see which brokers there are while the coordinator does not answer. One that stands still
// keeps its connections, and their requests, until they time out; but soon the others give it up, and then our clients
// do so, too, and find the next coordinator.
func (m *member) keepLooking(ctx context.Context) {
	for cluster.Pause(ctx, m.d.cluster.Settings.Session/6) == nil {
		m.mu.Lock()
		heard := m.vouched(time.Now().Add(m.d.cluster.Settings.Session / 2))
		m.mu.Unlock()
		if !heard {
			cluster.LookAround(ctx, m.d.cluster.Client)
			cluster.LookAround(ctx, m.cl)
		}
	}
}

// askVouched sends one heartbeat.
func (m *member) askVouched(ctx context.Context) error {
	sent := time.Now()
	as, calm, err := m.Heartbeat(ctx, m.d.cluster, m.d.cluster.GroupID(m.topic.Name, m.group))
	if err == nil {
		m.answered(sent, calm, as)
	}
	return err
}

// answered is told when a question was sent that the coordinator has answered, whether it knew of no rebalance, and as
// whom we asked.
func (m *member) answered(sent time.Time, calm bool, as cluster.Identity) {
	m.mu.Lock()
	defer m.mu.Unlock()
	// in a later generation we have joined, and may be removed again before we know our part
	if calm && as == m.assignedAs {
		m.calm = sent
	}
	if calm || as == m.assignedAs { // otherwise the rebalance after the one that we have joined has begun
		m.heard = sent
	}
	until := sent.Add(m.d.cluster.Settings.Session)
	if end := m.calm.Add(cluster.Rebalance); end.Before(until) {
		until = end
	}
	lapsed := !m.vouched(time.Now())
	if until.After(m.sure) {
		m.sure = until
	}
	if lapsed {
		m.wakeAll()
	}
}

// rejoined notes that a rebalance has brought us our part. Only the next one can remove us, and it had not begun when
// we were heard of in this one.
func (m *member) rejoined() {
	m.assignedAs = m.Known()
	m.calm = m.heard
}

// Disown notes that we are no member: somebody made us leave, and our partitions may be with others.
func (m *member) Disown() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sure = time.Time{}
}
