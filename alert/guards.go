package alert

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ferrymq/ferry/guard"
)

const (
	manyUsers = 10 // blocked within a minute

	maxViolators   = 10_000 // keys whose violations are counted
	recentMessages = 10_000 // messages of all keys that are remembered
	lastMessages   = 100    // of a key that is blocked, that its notice tells
)

// GuardHook raises UserBlocked when a limit blocks a key, BreakerOpen when a breaker opens, and ManyUsersBlocked when
// ten keys were blocked within a minute. Violations are those that this process saw since the key was last blocked;
// messages are the key's last 100 among the last 10,000 of all keys that it saw.
func (w *Watch) GuardHook() guard.Hook {
	g := &guardEvents{violations: map[string]int{}, blocked: map[string]time.Time{}}
	return func(ctx context.Context, e guard.Event) {
		for _, found := range g.see(e, time.Now()) {
			w.note(ctx, found)
		}
	}
}

// guardEvents remembers what guards told.
type guardEvents struct {
	mu         sync.Mutex
	violations map[string]int
	blocked    map[string]time.Time
	recent     []guardedMessage // a ring, once it is full
	oldest     int              // of the ring
}

// guardedMessage is a message that a limit was asked about.
type guardedMessage struct{ key, id string }

func (g *guardEvents) see(e guard.Event, now time.Time) []event {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e.ID != "" && e.Kind != guard.EventPenalized { // that one follows another of the same message
		g.remember(guardedMessage{e.Key, e.ID})
	}
	switch {
	case e.Kind == guard.EventLimited && len(g.violations) < maxViolators:
		g.violations[e.Key]++
	case e.Kind == guard.EventPenalized:
		return g.penalized(e, now)
	case e.Kind == guard.EventState && e.State == guard.StateOpen:
		_, user, _ := strings.Cut(e.Name, "/") // that of a breaker for each key is name/key
		return []event{{rule: BreakerOpen, subject: e.Name, values: map[string]any{"user_id": user, "name": e.Name}}}
	}
	return nil
}

func (g *guardEvents) remember(m guardedMessage) {
	if len(g.recent) < recentMessages {
		g.recent = append(g.recent, m)
		return
	}
	g.recent[g.oldest] = m
	g.oldest = (g.oldest + 1) % recentMessages
}

// last are the ids of the last messages of a key, the newest first. One that was refused and came again is named once.
func (g *guardEvents) last(key string) []string {
	var ids []string
	for i := range g.recent {
		m := g.recent[(g.oldest+len(g.recent)-1-i)%len(g.recent)]
		if m.key == key && !slices.Contains(ids, m.id) {
			ids = append(ids, m.id)
		}
		if len(ids) == lastMessages {
			break
		}
	}
	return ids
}

func (g *guardEvents) penalized(e guard.Event, now time.Time) []event {
	found := []event{{rule: UserBlocked, subject: e.Key, values: map[string]any{"user_id": e.Key, "name": e.Name,
		"violations": float64(g.violations[e.Key]), "block_hours": e.After.Hours(), Messages: g.last(e.Key)}}}
	delete(g.violations, e.Key)
	for key, at := range g.blocked {
		if now.Sub(at) > time.Minute {
			delete(g.blocked, key)
		}
	}
	g.blocked[e.Key] = now
	if len(g.blocked) >= manyUsers {
		found = append(found, event{rule: ManyUsersBlocked, subject: e.Name,
			values: map[string]any{"users": float64(len(g.blocked)), "name": e.Name}})
		clear(g.blocked)
	}
	return found
}
