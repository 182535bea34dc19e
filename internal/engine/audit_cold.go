package engine

import (
	"fmt"
	"slices"

	"github.com/ferrymq/ferry/driver"
)

// What is cold is not compared one by one: memory knows how many there are.

// stretches returns the stretches as they are now.
func (a *storeAudit) stretches() []stretch {
	a.t.mu.Lock()
	defer a.t.mu.Unlock()
	return slices.Clone(a.t.cold.stretches.vs)
}

// isCold reports whether a message that the store has is cold now, and counts it.
func (a *storeAudit) isCold(seq uint64) bool {
	a.t.mu.Lock()
	defer a.t.mu.Unlock()
	i := a.t.cold.find(seq)
	if i < 0 || a.t.log.get(seq) != nil {
		return false
	}
	a.cold[a.t.cold.stretches.vs[i].first]++
	return true
}

// compareCold says what is wrong with the stretches that were there all the time.
func (a *storeAudit) compareCold(before []stretch) (ps []driver.Problem) {
	a.t.mu.Lock()
	defer a.t.mu.Unlock()
	for _, s := range before {
		i := a.t.cold.find(s.first)
		if i < 0 || a.t.cold.stretches.vs[i] != s || a.cold[s.first] == s.count {
			continue
		}
		ps = append(ps, driver.Problem{Kind: "store",
			Text: fmt.Sprintf("%d messages should lie between 0-%d and 0-%d, but the store has %d", s.count, s.first, s.last,
				a.cold[s.first])})
	}
	return ps
}
