package prom

import (
	"log/slog"
	"sync"
)

// other is the label of what is not told apart. No topic and no group can have this name.
const other = "(other)"

// bounds lets the first names of each label in, and makes the rest other.
type bounds struct {
	log *slog.Logger

	mu    sync.Mutex
	names map[string]*names
}

type names struct {
	limit  int
	seen   map[string]bool
	folded map[string]bool // of which no more than limit are told apart either
}

func newBounds(log *slog.Logger, limits map[string]int) *bounds {
	b := &bounds{log: log, names: map[string]*names{}}
	for label, limit := range limits {
		b.names[label] = &names{limit: limit, seen: map[string]bool{}, folded: map[string]bool{}}
	}
	return b
}

// admit returns the name, or other.
func (b *bounds) admit(label, name string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.names[label]
	switch {
	case n == nil || n.seen[name] || name == "" || name == other:
		return name
	case len(n.seen) < n.limit:
		n.seen[name] = true
		return name
	}
	if len(n.folded) == 0 {
		b.log.Warn("metrics: there are more names than are told apart; what comes now is added up as "+other, "label", label,
			"limit", n.limit, "name", name)
	}
	if len(n.folded) < n.limit {
		n.folded[name] = true
	}
	return other
}

// foldedNames is how many names of each label were folded.
func (b *bounds) foldedNames() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make(map[string]int, len(b.names))
	for label, n := range b.names {
		out[label] = len(n.folded)
	}
	return out
}
