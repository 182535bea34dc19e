package publisher

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/internal/refusal"
)

// dedupIDs are the ids this process has published a while ago: a producer session, no more.
type dedupIDs struct {
	mu   sync.Mutex
	ids  map[string]reservation
	next time.Time // of the next sweep
}

type reservation struct {
	id    string
	until time.Time
	by    *Call         // that publishes it: within it a repeat need not wait
	open  chan struct{} // closed when it is known whether it was stored; nil: it was
}

func newDedupIDs() *dedupIDs { return &dedupIDs{ids: map[string]reservation{}} }

// reserve remembers key for a window, or returns the id it was remembered with. While nobody knows whether that one was
// stored, it returns what to wait for.
func (m *dedupIDs) reserve(key, id string, window time.Duration, by *Call) (first string, fresh bool,
	open <-chan struct{}) {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sweep(now)
	if r, ok := m.ids[key]; ok && (r.open != nil || now.Before(r.until)) {
		if r.by == by {
			return r.id, false, nil
		}
		return r.id, false, r.open
	}
	if len(m.ids) < cluster.MaxRemembered {
		m.ids[key] = reservation{id, now.Add(window), by, make(chan struct{})}
	}
	return id, true, nil
}

// Resolve says what became of keys: stored, or to be forgotten.
func (m *dedupIDs) Resolve(keys []string, stored bool) {
	if len(keys) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range keys {
		r, ok := m.ids[key]
		if !ok {
			continue
		}
		if r.open != nil {
			close(r.open)
		}
		if r.open, r.by = nil, nil; stored {
			m.ids[key] = r
		} else {
			delete(m.ids, key)
		}
	}
}

func (m *dedupIDs) sweep(now time.Time) {
	if now.Before(m.next) {
		return
	}
	m.next = now.Add(10 * time.Second)
	maps.DeleteFunc(m.ids, func(_ string, r reservation) bool { return r.open == nil && !now.Before(r.until) })
}

// reserveIDs reserves the ids of a message. While another call publishes one of them it returns what to wait for: only
// what was stored makes a duplicate, and not what was published to a topic that was deleted since.
func (d *Publisher) reserveIDs(m *driver.Message, c *Call, p *Posting) (first string, fresh bool,
	wait <-chan struct{}) {
	reserve := func(key string, window time.Duration) bool {
		if first, fresh, wait = d.Dedup.reserve(key, m.ID, window, c); fresh {
			p.Reserved, c.reserves = append(p.Reserved, key), true
		}
		return fresh
	}
	first, fresh = m.ID, true
	if m.DedupID != "" && !reserve("d/"+c.row.Born+"/"+m.Topic+"/"+m.DedupID, m.DedupWindow) {
		return first, false, wait
	}
	if m.OwnID && !reserve("o/"+c.row.Born+"/"+m.Topic+"/"+m.ID, cluster.IDWindow) {
		return first, false, wait
	}
	return m.ID, true, nil
}

// await waits until it is known what became of an id that another call publishes.
func (d *Publisher) await(ctx context.Context, wait <-chan struct{}) error {
	select {
	case <-wait:
		return nil
	case <-ctx.Done():
		return driver.NewError(driver.ErrNotApplied, "the same id is being published, and the context ended before it was "+
			"known what became of it", "try again", ctx.Err())
	case <-d.cluster.Done():
		return refusal.Closed()
	}
}
