package prom

import (
	"context"
	"sync"

	"github.com/ferrymq/ferry/guard"
)

// guards counts what guards tell.
type guards struct {
	bounds *bounds

	mu     sync.Mutex
	counts map[guardCount]uint64
	states map[string]guard.State // of breakers
}

type guardCount struct {
	layer, name string
	kind        guard.EventKind
	to          guard.State
}

// happened is told of every event. Names are bounded here, so that a name in every message costs no memory.
func (g *guards) happened(_ context.Context, e guard.Event) {
	at := guardCount{layer: e.Layer, name: g.bounds.admit("name", e.Name), kind: e.Kind}
	switch e.Kind {
	case guard.EventLimited, guard.EventBlocked, guard.EventBusy, guard.EventOpen, guard.EventPenalized:
	case guard.EventState:
		at.to = e.State
	default:
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.counts == nil {
		g.counts, g.states = map[guardCount]uint64{}, map[string]guard.State{}
	}
	g.counts[at]++
	if e.Kind == guard.EventState {
		g.states[at.name] = e.State
	}
}

func (g *guards) collect(s *sheet, fs *families) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for at, n := range g.counts {
		switch at.kind {
		case guard.EventState:
			s.add(fs.transitions, float64(n), at.name, string(at.to))
			continue
		case guard.EventPenalized:
			s.add(fs.penalties, float64(n), at.name)
			continue
		case guard.EventLimited:
			s.add(fs.violations, float64(n), at.name)
		}
		s.add(fs.guardRefused, float64(n), at.layer, at.name, string(at.kind))
	}
	for name, state := range g.states {
		s.add(fs.breaker, map[guard.State]float64{guard.StateClosed: 0, guard.StateHalfOpen: 1, guard.StateOpen: 2}[state],
			name)
	}
}

// ofLimits counts the blocked keys of limits. A store that does not answer leaves them out.
func (fs *families) ofLimits(ctx context.Context, s *sheet, store guard.Store, limits []string) {
	for _, limit := range limits {
		page, err := store.List(ctx, guard.Query{Kind: guard.KindBlocked, Limit: limit, Max: 1000})
		if err != nil {
			return
		}
		s.add(fs.blocked, float64(len(page.Keys)), limit)
	}
}
