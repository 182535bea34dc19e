// Package guardtest checks that a guard.Store keeps its promises, and that guards keep theirs on a broker.
package guardtest

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/guard/store"
)

// Harness opens stores for the suite.
type Harness struct {
	// Open returns an empty store, which the suite closes.
	Open func(t testing.TB) guard.Store
	// Peer opens what another process would see of the same store. Nil: there are no other processes.
	Peer func(t testing.TB, s guard.Store) guard.Store
	// Reopen closes a store and opens it again. Nil: nothing survives.
	Reopen func(t testing.TB, s guard.Store) guard.Store
	// Virtual says that the store lives in this process and by its clock, so that time may be virtual.
	Virtual bool
	// Leased says that slots and marks in progress end by themselves when nobody renews them.
	Leased bool
}

// suite is one case at work.
type suite struct {
	Harness
	testing.TB
	ctx   context.Context
	store guard.Store
	unit  time.Duration // of short waits
}

var cases = []struct {
	name string
	run  func(s *suite)
}{
	{"window-is-exact", windowIsExact},
	{"window-opens-when-it-said", windowOpens},
	{"bucket-holds-its-burst", bucketHolds},
	{"bucket-refills", bucketRefills},
	{"limits-are-decided-together", decidedTogether},
	{"paced-messages-keep-their-distance", paced},
	{"returned-is-not-counted", returned},
	{"returned-tokens", returnedTokens},
	{"peek-counts-nothing", peek},
	{"a-message-is-one-violation", oneViolation},
	{"a-message-that-passes-at-once-ends-the-row", rowEnds},
	{"a-message-that-waited-does-not-end-the-row", rowGoesOn},
	{"who-waits-and-goes-on-too-fast-violates", goesOnTooFast},
	{"what-piled-up-is-no-violation", piledUp},
	{"what-a-block-was-for-is-paid", paid},
	{"penalties-grow", penaltiesGrow},
	{"unlimited-passes", unlimitedPasses},
	{"operators-block-and-unblock", operatorsBlock},
	{"blocks-end", blocksEnd},
	{"overrides-hold-for-a-time", overrides},
	{"whitelist", whitelist},
	{"a-rule-that-is-set-holds-in-every-process", rulesAreShared},
	{"a-rule-that-is-set-paces", rulesPace},
	{"rules-are-bounded", rulesBounded},
	{"lists-have-pages", listPages},
	{"changes-are-audited", audited},
	{"slots-are-bounded", slotsBounded},
	{"a-stale-release-frees-nothing", staleRelease},
	{"slots-of-the-dead-are-free", slotsExpire},
	{"work-is-done-once", doneOnce},
	{"a-stale-abort-undoes-nothing", staleAbort},
	{"marks-end", marksEnd},
	{"breakers-are-reported-and-forced", breakersForced},
	{"ten-instances-admit-one-limit", tenInstances},
	{"never-more-than-the-limit", neverMore},
	{"what-matters-survives", survives},
}

// Run runs every case against stores of a harness.
func Run(t *testing.T, h Harness) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if h.Virtual {
				synctest.Test(t, func(t *testing.T) { runCase(t, h, c.run) })
			} else {
				runCase(t, h, c.run)
			}
		})
	}
}

func runCase(t *testing.T, h Harness, run func(s *suite)) {
	s := &suite{Harness: h, TB: t, ctx: context.Background(), store: h.Open(t), unit: time.Second}
	if !h.Virtual {
		s.unit = 100 * time.Millisecond
	}
	defer func() { s.must(s.store.Close(s.ctx)) }()
	run(s)
}

func (s *suite) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// rule returns a resolved rule.
func (s *suite) rule(r guard.Rule) *guard.Rule {
	s.Helper()
	resolved, err := r.Resolve()
	s.must(err)
	return &resolved
}

func item(limit, key string, r *guard.Rule) store.Item {
	return store.Item{Limit: limit, Key: key, Rule: r}
}

func (s *suite) take(id string, items ...store.Item) guard.Verdict {
	s.Helper()
	v, err := s.store.Take(s.ctx, store.Take{ID: id, Items: items})
	s.must(err)
	return v
}

// admitted fails unless the message passes.
func (s *suite) admitted(id string, items ...store.Item) {
	s.Helper()
	if v := s.take(id, items...); !v.Admitted {
		s.Fatalf("message %s was refused: %+v", id, v)
	}
}

// refused fails unless the message is refused, by its limit or a block.
func (s *suite) refused(id string, blocked bool, items ...store.Item) guard.Verdict {
	s.Helper()
	v := s.take(id, items...)
	if v.Admitted || v.Blocked != blocked || v.After <= 0 {
		s.Fatalf("message %s: %+v, want refused, blocked %v", id, v, blocked)
	}
	return v
}

func (s *suite) status(limit, key string) guard.Status {
	s.Helper()
	st, err := s.store.Status(s.ctx, limit, key)
	s.must(err)
	return st
}

func (s *suite) change(c guard.Change) {
	s.Helper()
	c.Actor, c.Reason = "tester", "test"
	s.must(s.store.Change(s.ctx, c))
}

// near fails unless a duration is what is wanted, less what real time has passed.
func (s *suite) near(what string, got, want time.Duration) {
	s.Helper()
	slack := time.Minute
	if s.Virtual {
		slack = time.Millisecond
	}
	if got > want+time.Millisecond || got < want-slack {
		s.Fatalf("%s is %v, want %v", what, got, want)
	}
}

func (s *suite) pass(d time.Duration) { time.Sleep(d) }

func number(i int) string { return fmt.Sprintf("m%d", i) }
