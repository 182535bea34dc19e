package kafka

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A process that is stopped or cut off for longer than its session is no member any more, and learns of it a moment after it goes on.
// In that moment it must neither hand out nor settle what is with others. So it asks the coordinator itself: an answer to a question says
// that nobody else gets its partitions for one session from when the question was sent.

// vouched reports whether the partitions are surely still ours.
func (m *member) vouched(now time.Time) bool { return now.Before(m.sure) }

// keepVouched asks until the member leaves.
func (m *member) keepVouched(ctx context.Context) {
	defer m.tasks.Done()
	tick := time.NewTicker(m.d.o.Session / 6)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-m.unsure:
		}
		if m.askVouched(ctx) != nil {
			m.noteGeneration(m.cl) // a rebalance may have brought another one
			if errors.Is(m.askVouched(ctx), kerr.UnknownMemberID) {
				m.disown()
			}
		}
	}
}

// askVouched sends one heartbeat.
func (m *member) askVouched(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, m.d.o.Session)
	defer cancel()
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group = m.d.groupID(m.topic.name, m.group)
	req.MemberID, req.Generation = m.known()
	sent := time.Now()
	resp, err := req.RequestWith(ctx, m.d.client)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err != nil && !errors.Is(err, kerr.RebalanceInProgress) {
		return err
	}
	m.vouch(sent.Add(m.d.o.Session))
	return nil
}

// askSoon lets keepVouched ask now.
func (m *member) askSoon() {
	select {
	case m.unsure <- struct{}{}:
	default:
	}
}

// disown notes that we are no member: somebody made us leave, and our partitions may be with others.
func (m *member) disown() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sure = time.Time{}
}

// vouch notes until when the partitions are ours.
func (m *member) vouch(until time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	lapsed := !m.vouched(time.Now())
	if until.After(m.sure) {
		m.sure = until
	}
	if lapsed {
		m.wakeAll()
	}
}
