package guard

import (
	"fmt"
	"testing"
	"time"
)

// TestSnapshotKeepsRules: those whose changes have left the audit list are kept, and those that were cleared are not.
func TestSnapshotKeepsRules(t *testing.T) {
	t.Parallel()
	now := time.Now()
	l := newLedger(now, 0)
	change := func(c Change) {
		t.Helper()
		if err := l.change(now, c); err != nil {
			t.Fatal(err)
		}
	}
	change(Change{Action: ActionSetRule, Limit: "user", Group: "vip", Rule: unlimited})
	change(Change{Action: ActionSetRule, Limit: "user", Rule: unlimited})
	for i := range auditBound - 1 {
		change(Change{Action: ActionUnblock, Limit: "user", Key: fmt.Sprint(i % 3)})
	}
	change(Change{Action: ActionClearRule, Limit: "user"})
	again := newLedger(now, 0)
	for _, e := range l.snapshot(now) {
		again.replay(now, e)
	}
	if rules := again.sharedRules(); len(rules) != 1 || rules[0].Group != "vip" || !rules[0].Rule.Unlimited {
		t.Errorf("the rules are %+v, want that of vip", rules)
	}
}
