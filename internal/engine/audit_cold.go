package engine

import (
	"fmt"

	"github.com/ferrymq/ferry/driver"
)

// compareCold says what is wrong with the stretches that were there all the time.
func (a *storeAudit) compareCold(before []stretch) (ps []driver.Problem) {
	a.t.mu.Lock()
	defer a.t.mu.Unlock()
	for _, s := range before {
		i := a.t.cold.find(s.first)
		if i < 0 || a.t.cold.stretches[i] != s || a.cold[s.first] == s.count {
			continue
		}
		ps = append(ps, driver.Problem{Kind: "store",
			Text: fmt.Sprintf("%d messages should lie between 0-%d and 0-%d, but the store has %d", s.count, s.first, s.last,
				a.cold[s.first])})
	}
	return ps
}
