package consumer

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/registry"
)

// keepTime rings the alarms of a member until it ends.
func (m *member) keepTime(ctx context.Context) {
	m.ring.Rounds(ctx, func() time.Duration {
		m.ringDue(time.Now())
		m.mu.Lock()
		defer m.mu.Unlock()
		return time.Until(m.began.Add(m.alarms.Next()))
	})
}

// ringDue does what time has brought: due items, lost leases, expiry.
func (m *member) ringDue(now time.Time) {
	m.mu.Lock()
	var expired []*Item
	for m.alarms.Next() <= now.Sub(m.began) {
		a := m.alarms.Top()
		m.alarms.RemoveAt(0)
		switch it := a.it; {
		case a.s != nil:
			m.endLeases(a.s, now)
		case it.state == gone || it.state == inflight || it.p.going:
		case it.expired(now):
			expired = append(expired, it)
			m.withhold(it)
		case it.state == waiting && !it.due.After(now):
			m.becomeDue(it)
		}
	}
	m.mu.Unlock()
	for _, it := range expired {
		m.expire(it)
	}
}

// expire ends an item whose TTL has passed: discarded, or a dead letter.
func (m *member) expire(it *Item) {
	ctx, cancel := context.WithTimeout(context.Background(), m.d.cluster.Settings.Session)
	defer cancel()
	var row registry.TopicRow
	m.d.registry.Row(registry.TopicKey(m.topic.Name), &row)
	var err error
	if row.Config.ExpiredDead {
		err = m.saver.fill(ctx, it)
	}
	var rs []*kgo.Record // one after the other
	m.mu.Lock()
	if row.Config.ExpiredDead {
		f := driver.Failure{At: time.Now().UTC(), Attempt: it.attempts + 1, Reason: driver.ReasonExpired,
			Error: "the message expired"}
		rs = append(rs, m.deadRecord(it, &f, ""))
	}
	if it.logKey != "" {
		rs = append(rs, m.endOf(it))
	}
	m.mu.Unlock()
	for _, r := range rs {
		if err == nil {
			err = m.d.cluster.Produce(ctx, r)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		m.leaveToClock(it, time.Now().Add(time.Second))
		return
	}
	if row.Config.ExpiredDead {
		it.p.tally.Died++
	} else {
		it.p.tally.Expired++
	}
	m.remove(it)
}
