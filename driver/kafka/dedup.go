package kafka

import (
	"sync"
	"time"
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
}

func newRemembered() *remembered { return &remembered{ids: map[string]remembering{}} }

// claim remembers key for a window, or returns the id it was remembered with.
func (m *remembered) claim(key, id string, window time.Duration) (first string, fresh bool) {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sweep(now)
	if r, ok := m.ids[key]; ok && now.Before(r.until) {
		return r.id, false
	}
	if len(m.ids) < maxRemembered {
		m.ids[key] = remembering{id, now.Add(window)}
	}
	return id, true
}

func (m *remembered) forget(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.ids, key)
}

func (m *remembered) sweep(now time.Time) {
	if now.Before(m.next) {
		return
	}
	m.next = now.Add(10 * time.Second)
	for k, r := range m.ids {
		if !now.Before(r.until) {
			delete(m.ids, k)
		}
	}
}
