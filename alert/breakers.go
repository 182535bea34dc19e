package alert

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/ferrymq/ferry/guard"
)

// mostBlocked is how many blocked keys are counted: a rule wants to know whether there are too many.
const mostBlocked = 1000

// guarded is what the guard store of the workers tells.
type guarded struct {
	blocked  float64
	breakers map[string]float64 // in how many processes each is open
}

// askGuards asks the store. Without one there is nothing to tell.
func askGuards(ctx context.Context, store guard.Store) (*guarded, error) {
	if store == nil {
		return nil, nil
	}
	page, err := store.List(ctx, guard.Query{Kind: guard.KindBlocked, Max: mostBlocked})
	if err != nil {
		return nil, err
	}
	reports, err := store.Reports(ctx)
	if err != nil {
		return nil, err
	}
	g := &guarded{blocked: float64(len(page.Keys)), breakers: map[string]float64{}}
	for _, b := range reports {
		g.breakers[b.Name] += count(b.State == guard.StateOpen)
	}
	return g, nil
}

// subjects are the breakers. Values of the system are among those of each.
func (g *guarded) subjects(system map[string]any) []subject {
	if g == nil {
		return nil
	}
	var found []subject
	for _, breaker := range slices.Sorted(maps.Keys(g.breakers)) {
		name := subjectName(breaker)
		found = append(found, subject{level: ofBreaker, name: name,
			values: with(system, map[string]any{"breaker": name, breakerOpen: g.breakers[breaker]})})
	}
	return found
}

// maxSubject is how many bytes of the name of a breaker are shown: with a rule's it is the name of a value.
const maxSubject = 256

// subjectName is the name of a breaker, if the broker takes it as part of a name. That of a breaker for each key has
// the key in it, which may be any bytes: then it is what can be shown, and a hash.
func subjectName(breaker string) string {
	name := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(breaker, "?"))
	if name == breaker && len(name) <= maxSubject {
		return name
	}
	sum := sha256.Sum256([]byte(breaker))
	return strings.ToValidUTF8(name[:min(len(name), maxSubject-20)], "") + "…" + hex.EncodeToString(sum[:8])
}
