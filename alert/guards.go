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
// messages are the key's last 100 among the last 10,000 of all keys that it saw. The first violation of a key in a row
// is logged as information, the second as a warning.
func (w *Watch) GuardHook() guard.Hook {
	g := &guardEvents{violators: map[string]violator{}, blocked: map[string]time.Time{}}
	return func(ctx context.Context, e guard.Event) {
		found, inARow := g.see(e, time.Now())
		switch inARow {
		case 1:
			w.log.InfoContext(ctx, "a limit holds a key back", "limit", e.Name, "key", e.Key, "after", e.After)
		case 2:
			w.log.WarnContext(ctx, "a limit holds a key back again", "limit", e.Name, "key", e.Key, "after", e.After)
		}
		for _, one := range found {
			w.note(ctx, one)
		}
	}
}

// violator is how often a key went over a limit: since it was last blocked, and since it last kept to it.
type violator struct {
	violations, inARow int
	last               string // id of the last message that did: it may come back several times
}

// guardEvents remembers what guards told.
type guardEvents struct {
	mu        sync.Mutex
	violators map[string]violator
	blocked   map[string]time.Time
	recent    []guardedMessage // a ring, once it is full
	oldest    int              // of the ring
}

// guardedMessage is a message that a limit was asked about.
type guardedMessage struct{ key, id string }

// see returns what is to be told of an event, and of a violation how many of the key there were in a row.
func (g *guardEvents) see(e guard.Event, now time.Time) (found []event, inARow int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e.ID != "" && e.Kind != guard.EventPenalized { // that one follows another of the same message
		g.remember(guardedMessage{e.Key, e.ID})
	}
	switch {
	case e.Kind == guard.EventLimited:
		return nil, g.violated(e)
	case e.Kind == guard.EventAdmitted:
		if v, ok := g.violators[e.Key]; ok && (e.ID == "" || e.ID != v.last) {
			g.violators[e.Key] = violator{violations: v.violations}
		}
	case e.Kind == guard.EventPenalized:
		return g.penalized(e, now), 0
	case e.Kind == guard.EventState && e.State == guard.StateOpen:
		_, user, _ := strings.Cut(e.Name, "/") // that of a breaker for each key is name/key
		return []event{{rule: BreakerOpen, subject: e.Name, values: map[string]any{"user_id": user, "name": e.Name}}}, 0
	}
	return nil, 0
}

// violated counts a violation, and returns how many there were in a row. It is 0 if it was counted before, or if there
// are too many keys to know.
func (g *guardEvents) violated(e guard.Event) int {
	v, known := g.violators[e.Key]
	if !known && len(g.violators) >= maxViolators || e.ID != "" && e.ID == v.last {
		return 0
	}
	v.violations++
	v.inARow++
	v.last = e.ID
	g.violators[e.Key] = v
	return v.inARow
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
		"violations": float64(g.violators[e.Key].violations), "block_hours": e.After.Hours(), Messages: g.last(e.Key)}}}
	delete(g.violators, e.Key)
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
