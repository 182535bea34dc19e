// Package schedule is the small language in which faults are planned.
//
//	at 2s kill consumer 1; every 5s stop producer any for 2s; every 1s-3s latency consumer all with 200ms for 1s
//
// A schedule is clauses with semicolons (or line ends) between. Each says when ("at 2s", "every 5s", "every 1s-3s from
// 10s until 30s"), what (an action), to whom ("consumer 1", "producer any", "server all", or nobody), how strongly
// ("with 200ms") and how long ("for 2s"). Which actions exist is up to the broker under test.
package schedule

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Action is something the broker under test can be done to.
type Action struct {
	// Roles that it can be done to, "consumer" and "producer" for example. None: it names no victim.
	Roles []string
	// Lasting actions need "for"; the others end at once.
	Lasting bool
	// Value says what "with" means, "a latency" for example. Empty: it takes none.
	Value string
	// Help is one line for those who look for an action.
	Help string
}

// Actions are what a broker under test knows, by name.
type Actions map[string]Action

// String lists the actions, one per line.
func (a Actions) String() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(a)) {
		act := a[name]
		usage := name
		if len(act.Roles) > 0 {
			usage += " " + strings.Join(act.Roles, "|") + " N|any|all"
		}
		if act.Value != "" {
			usage += " with VALUE"
		}
		if act.Lasting {
			usage += " for DURATION"
		}
		fmt.Fprintf(&b, "  %-52s %s\n", usage, act.Help)
	}
	return b.String()
}

// Clause is one sentence of a schedule.
type Clause struct {
	Text string
	// Every is zero for a clause that happens once, at From. With EveryMax the interval is random between the two.
	Every, EveryMax time.Duration
	From, Until     time.Duration
	Action          string
	Role            string // empty: no victim
	Which           int    // from 1; or Any, or All
	For             time.Duration
	With            string
}

// Values of Clause.Which that are no number.
const (
	All = 0
	Any = -1
)
