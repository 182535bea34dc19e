package kafka

import (
	"context"
	"sync"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/refusal"
)

// remembered are the ids this process has published a while ago: a producer session, no more.
type remembered struct {
	mu   sync.Mutex
	ids  map[string]remembering
	next time.Time // of the next sweep
}

type remembering struct {
	id    string
	until time.Time
	by    *call         // that publishes it: within it a repeat need not wait
	open  chan struct{} // closed when it is known whether it was stored; nil: it was
}

func newRemembered() *remembered { return &remembered{ids: map[string]remembering{}} }

// claim remembers key for a window, or returns the id it was remembered with. While nobody knows whether that one was stored, it returns what to wait for.
func (m *remembered) claim(key, id string, window time.Duration, by *call) (first string, fresh bool, open <-chan struct{}) {
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
	if len(m.ids) < maxRemembered {
		m.ids[key] = remembering{id, now.Add(window), by, make(chan struct{})}
	}
	return id, true, nil
}

// resolve says what became of keys: stored, or to be forgotten.
func (m *remembered) resolve(keys []string, stored bool) {
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

func (m *remembered) sweep(now time.Time) {
	if now.Before(m.next) {
		return
	}
	m.next = now.Add(10 * time.Second)
	for k, r := range m.ids {
		if r.open == nil && !now.Before(r.until) {
			delete(m.ids, k)
		}
	}
}

// remembered claims the ids of a message. While another call publishes one of them it returns what to wait for: only what was stored makes a duplicate.
func (d *Driver) remembered(m *driver.Message, c *call, p *posting) (first string, fresh bool, wait <-chan struct{}) {
	claim := func(key string, window time.Duration) bool {
		if first, fresh, wait = d.known.claim(key, m.ID, window, c); fresh {
			p.claims, c.claims = append(p.claims, key), true
		}
		return fresh
	}
	first, fresh = m.ID, true
	if m.DedupID != "" && !claim("d/"+m.Topic+"/"+m.DedupID, m.DedupWindow) {
		return first, false, wait
	}
	if m.OwnID && !claim("o/"+m.Topic+"/"+m.ID, idWindow) {
		return first, false, wait
	}
	return m.ID, true, nil
}

// await waits until it is known what became of an id that another call publishes.
func (d *Driver) await(ctx context.Context, wait <-chan struct{}) error {
	select {
	case <-wait:
		return nil
	case <-ctx.Done():
		return driver.NewError(driver.ErrNotApplied, "the same id is being published, and the context ended before it was known what became of it", "try again", ctx.Err())
	case <-d.done:
		return refusal.Closed()
	}
}
