package alert

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/notify"
)

// Rules of events that GuardHook raises.
const (
	UserBlocked      = "UserBlocked"
	BreakerOpen      = "UserCircuitBreakerOpen"
	ManyUsersBlocked = "ManyUsersBlocked"
)

const (
	maxEvents = 256 // that wait for being told
	manyUsers = 10  // blocked within a minute
)

// event is something that happened in this process.
type event struct {
	rule, subject string
	values        map[string]any
}

// Raise tells people of an event, by a rule that has no condition. Of one subject at most one notice is sent in each
// cool-down of the rule, whichever processes raise it; it reports whether this one was.
func (w *Watch) Raise(ctx context.Context, rule, subject string, values map[string]any) (bool, error) {
	if _, err := w.refresh(ctx); err != nil {
		return false, err
	}
	r := w.eventRule(rule)
	if r == nil {
		return false, driver.NewError(ferry.ErrNotFound, fmt.Sprintf("there is no rule of events %.80q", rule),
			"add one without a condition", nil)
	}
	kv := w.broker.Driver().KV()
	quiet, err := w.Silences(ctx)
	if err != nil || r.Disabled || silenced(quiet, rule, subject) {
		return false, err
	}
	values = maps.Clone(values)
	if values == nil {
		values = map[string]any{}
	}
	maps.Copy(values, map[string]any{"rule": rule, "subject": subject, "severity": string(r.Severity),
		"threshold": r.Threshold})
	text, err := r.text.Execute(values)
	if err != nil {
		return false, err
	}
	now := time.Now()
	m := notify.NewMessage(fmt.Sprintf("[%s] %s", strings.ToUpper(string(r.Severity)), rule), text).
		WithID(eventID(rule, subject, now, r.Cooldown)).WithPriority(severities[r.Severity]).AddTarget(targets(r,
		w.o.Channels)...)
	if _, err := notify.Get(ctx, w.broker, m.ID); err == nil {
		return false, nil // told already in this cool-down
	}
	if _, err := w.o.Hub.Send(ctx, m); err != nil {
		return false, err
	}
	return true, record(ctx, kv, Entry{At: now, Rule: rule, Subject: subject, Severity: r.Severity, What: "raised",
		Text: text})
}

// eventID is the same for all who raise an event within one cool-down.
func eventID(rule, subject string, now time.Time, cooldown time.Duration) string {
	sum := sha256.Sum256([]byte(rule + "/" + subject))
	return fmt.Sprintf("event-%s-%d", hex.EncodeToString(sum[:8]), now.UnixNano()/int64(cooldown))
}

func (w *Watch) eventRule(name string) *compiled {
	r := w.rules.Load().find(name)
	if r == nil || r.program != nil {
		return nil
	}
	return r
}

// tellEvents raises what hooks noted.
func (w *Watch) tellEvents(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-w.events:
			if _, err := w.Raise(ctx, e.rule, e.subject, e.values); err != nil && ctx.Err() == nil {
				w.log.ErrorContext(ctx, "an event was not told", "rule", e.rule, "subject", e.subject, "error", err)
			}
		}
	}
}

// note leaves an event to Run. It does not wait: a hook runs in line.
func (w *Watch) note(ctx context.Context, e event) {
	if w.eventRule(e.rule) == nil {
		return
	}
	select {
	case w.events <- e:
	default:
		w.log.WarnContext(ctx, "an event is not told, since too many wait", "rule", e.rule, "subject", e.subject)
	}
}

// GuardHook raises UserBlocked when a limit blocks a key, BreakerOpen when a breaker opens, and ManyUsersBlocked when
// ten keys were blocked within a minute. Violations are those that this process saw since the key was last blocked.
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
}

// most bounds what is remembered of keys.
const most = 10_000

func (g *guardEvents) see(e guard.Event, now time.Time) []event {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case e.Kind == guard.EventLimited && len(g.violations) < most:
		g.violations[e.Key]++
	case e.Kind == guard.EventPenalized:
		return g.penalized(e, now)
	case e.Kind == guard.EventState && e.State == guard.StateOpen:
		_, user, _ := strings.Cut(e.Name, "/") // that of a breaker for each key is name/key
		return []event{{BreakerOpen, e.Name, map[string]any{"user_id": user, "name": e.Name}}}
	}
	return nil
}

func (g *guardEvents) penalized(e guard.Event, now time.Time) []event {
	found := []event{{UserBlocked, e.Key, map[string]any{"user_id": e.Key, "name": e.Name,
		"violations": float64(g.violations[e.Key]), "block_hours": e.After.Hours()}}}
	delete(g.violations, e.Key)
	for key, at := range g.blocked {
		if now.Sub(at) > time.Minute {
			delete(g.blocked, key)
		}
	}
	g.blocked[e.Key] = now
	if len(g.blocked) >= manyUsers {
		found = append(found, event{ManyUsersBlocked, e.Name, map[string]any{"users": float64(len(g.blocked)),
			"name": e.Name}})
		clear(g.blocked)
	}
	return found
}
