package consumer

import (
	"context"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/registry"
)

// keepTime rings the alarms of a member until it ends.
func (m *member) keepTime(ctx context.Context) {
	m.ring.Rounds(ctx, func() time.Duration {
		m.ringDue(time.Now())
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.alarms.Len() == 0 {
			return time.Hour
		}
		return time.Until(m.began.Add(m.alarms.Next()))
	})
}

// ringDue does what time has brought: due items, lost leases, expiry.
func (m *member) ringDue(now time.Time) {
	m.mu.Lock()
	var expired, suspects []*Item
	for m.alarms.Next() <= now.Sub(m.began) {
		a := m.alarms.Top()
		m.alarms.RemoveAt(0)
		switch it := a.it; {
		case a.s != nil:
			suspects = append(suspects, m.endLeases(a.s, now)...)
		case it.state == gone || it.state == inflight || it.state == aside:
		case !it.expires().IsZero() && !it.expires().After(now):
			expired = append(expired, it)
			m.enter(it, inflight) // nobody takes it while its end is stored
			m.withhold(it)
		case it.state == waiting && !it.due.After(now):
			m.becomeDue(it)
		}
	}
	m.mu.Unlock()
	m.saver.saveLapsed(suspects)
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
	if row.Config.ExpiredDead && err == nil {
		f := driver.Failure{At: time.Now().UTC(), Attempt: it.attempts + 1, Reason: driver.ReasonExpired,
			Error: "the message expired"}
		err = m.d.cluster.Produce(ctx, m.deadRecord(it, f, ""))
	}
	if err == nil && it.logKey != "" {
		err = m.d.cluster.Produce(ctx, m.endOf(it))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil { // try again later
		m.enter(it, waiting)
		it.due = time.Now().Add(time.Second)
		m.alarm(it.due, it, nil)
		return
	}
	it.p.tally.Expired++
	if row.Config.ExpiredDead {
		it.p.tally.Died++
	}
	m.remove(it)
}
