package guardtest

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/guard/store"
)

func operatorsBlock(s *suite) {
	r := s.rule(guard.Rule{Limit: 1, Window: time.Hour, Penalty: guard.Penalty{After: 2}})
	s.admitted("m0", item("user", "a", r))
	s.refused("m1", false, item("user", "a", r))
	s.change(guard.Change{Action: guard.ActionBlock, Limit: "user", Key: "a"})
	if v := s.refused("m2", true, item("user", "a", r)); v.After != guard.Forever {
		s.Errorf("%+v, want a block for good", v)
	}
	if st := s.status("user", "a"); st.Block == nil || !st.Block.Until.IsZero() || st.Actor != "tester" ||
		st.Reason != "test" {
		s.Errorf("%+v, want a block for good by tester", st)
	}
	s.change(guard.Change{Action: guard.ActionUnblock, Limit: "user", Key: "a"})
	if v := s.refused("m3", false, item("user", "a", r)); v.Violations != 1 {
		s.Errorf("%+v, want its violations forgotten", v)
	}
	if st := s.status("user", "a"); st.Block != nil || st.Level != 0 {
		s.Errorf("%+v, want no block", st)
	}
	s.change(guard.Change{Action: guard.ActionBlock, Limit: "user", Key: "new"}) // never seen before
	s.refused("m4", true, item("user", "new", r))
	if err := s.store.Change(s.ctx, guard.Change{Action: "promote", Limit: "user", Key: "a"}); err == nil {
		s.Error("a change that does not exist was accepted")
	}
}

func blocksEnd(s *suite) {
	r := s.rule(guard.Rule{Limit: 100, Window: time.Hour})
	s.change(guard.Change{Action: guard.ActionBlock, Limit: "user", Key: "a", For: 15 * s.unit})
	v := s.refused("m0", true, item("user", "a", r))
	s.pass(v.After)
	s.admitted("m1", item("user", "a", r))
	if p := s.list(guard.Query{Kind: guard.KindBlocked}); len(p.Keys) != 0 {
		s.Errorf("%+v are blocked, want none", p.Keys)
	}
}

func overrides(s *suite) {
	r := s.rule(guard.Rule{Limit: 1, Window: time.Hour})
	s.admitted("m0", item("user", "a", r))
	s.refused("m1", false, item("user", "a", r))
	s.change(guard.Change{Action: guard.ActionOverride, Limit: "user", Key: "a", For: time.Hour,
		Rule: *s.rule(guard.Rule{Limit: 3, Window: time.Hour})})
	s.admitted("m2", item("user", "a", r))
	s.admitted("m3", item("user", "a", r))
	s.refused("m4", false, item("user", "a", r))
	if st := s.status("user", "a"); st.Override == nil || st.Override.Rule.Limit != 3 ||
		st.Rule.Limit != 1 || st.Used != 3 {
		s.Errorf("%+v, want an override of 3", st)
	}
	if p := s.list(guard.Query{Kind: guard.KindOverridden}); len(p.Keys) != 1 || p.Keys[0].Key != "a" {
		s.Errorf("%+v are overridden, want a", p.Keys)
	}
	s.change(guard.Change{Action: guard.ActionClear, Limit: "user", Key: "a"})
	s.refused("m5", false, item("user", "a", r))
	s.admitted("m6", item("user", "b", r))
	s.change(guard.Change{Action: guard.ActionOverride, Limit: "user", Key: "b", For: 2 * s.unit,
		Rule: guard.Rule{Unlimited: true}})
	s.pass(3 * s.unit)
	s.refused("m7", false, item("user", "b", r))
}

func whitelist(s *suite) {
	r := s.rule(guard.Rule{Limit: 1, Window: time.Hour})
	s.change(guard.Change{Action: guard.ActionBlock, Limit: "user", Key: "a"})
	s.change(guard.Change{Action: guard.ActionWhitelist, Limit: "user", Key: "a"})
	for i := range 10 {
		s.admitted(number(i), item("user", "a", r))
	}
	if p := s.list(guard.Query{Kind: guard.KindWhitelisted}); len(p.Keys) != 1 || !p.Keys[0].Whitelisted {
		s.Errorf("%+v are whitelisted, want a", p.Keys)
	}
	s.change(guard.Change{Action: guard.ActionUnwhitelist, Limit: "user", Key: "a"})
	s.admitted("m10", item("user", "a", r)) // what passed by the list was not counted
	s.refused("m11", false, item("user", "a", r))
	s.change(guard.Change{Action: guard.ActionWhitelist, Limit: "user", Key: "a"})
	s.change(guard.Change{Action: guard.ActionBlock, Limit: "user", Key: "a"})
	s.refused("m12", true, item("user", "a", r))
}

// rulesAreShared: what one process sets, the next message of another obeys, whatever rule it brings.
func rulesAreShared(s *suite) {
	other := s.instances()[1]
	limiter := func(st guard.Store) *guard.Limiter {
		l, err := guard.NewLimiter(st, guard.LimiterOptions{Limits: []guard.Limit{{
			Name: "user", Rule: guard.Rule{Limit: 1, Window: time.Hour},
			Groups: map[string]guard.Rule{"vip": {Limit: 2, Window: time.Hour}},
			Group:  func(_ context.Context, key string) string { return strings.TrimSuffix(key, "-a") },
		}}})
		s.must(err)
		return l
	}
	one, two := limiter(s.store), limiter(other)
	passes := func(l *guard.Limiter, key string, want int) {
		s.Helper()
		n := 0
		for l.Allow(s.ctx, &ferry.Message{Key: key}) == nil && n <= want {
			n++
		}
		if n != want {
			s.Fatalf("%d messages of %s passed, want %d", n, key, want)
		}
	}
	passes(one, "-a", 1)
	passes(two, "vip-a", 2)
	admin, err := guard.NewAdmin(s.store, "tester")
	s.must(err)
	s.must(admin.SetRule(s.ctx, "user", "",
		guard.Rule{Limit: 4, Window: time.Hour, Penalty: guard.Penalty{After: 100}}, "campaign"))
	passes(two, "-a", 3)
	passes(one, "vip-a", 0)
	s.must(admin.SetRule(s.ctx, "user", "vip", guard.Rule{Unlimited: true}, "contract"))
	for range 5 {
		s.must(two.Allow(s.ctx, &ferry.Message{Key: "vip-a"}))
	}
	if st := s.status("user", "-a"); st.Rule.Limit != 4 || st.Rule.Penalty.After != 100 {
		s.Errorf("%+v, want the rule that was set", st)
	}
	rules, err := other.Rules(s.ctx)
	s.must(err)
	if len(rules) != 2 || rules[0].Group != "" || rules[0].Rule.Limit != 4 || rules[1].Group != "vip" ||
		!rules[1].Rule.Unlimited ||
		rules[1].Actor != "tester" || rules[1].Reason != "contract" || time.Since(rules[1].At).Abs() > time.Minute {
		s.Errorf("the rules are %+v", rules)
	}
	s.must(admin.ClearRule(s.ctx, "user", "", "over"))
	passes(two, "-a", 0)
	s.must(two.Allow(s.ctx, &ferry.Message{Key: "vip-a"}))
}

// rulesPace: what must wait is told the step of the rule that holds, not of the one it brings.
func rulesPace(s *suite) {
	r := s.rule(guard.Rule{Limit: 1, Window: time.Hour})
	named := store.Item{Limit: "user", Key: "a", Rule: r, RuleName: store.RuleName("user", "")}
	s.admitted("m0", named)
	if v := s.refused("m1", false, named); v.Step != time.Hour {
		s.Errorf("%+v, want a step of an hour", v)
	}
	s.change(guard.Change{Action: guard.ActionSetRule, Limit: "user",
		Rule: *s.rule(guard.Rule{Limit: 4, Window: time.Hour, Burst: 1})})
	s.admitted("m2", named)
	v := s.refused("m3", false, named)
	if v.Step != 15*time.Minute {
		s.Errorf("%+v, want a step of a quarter", v)
	}
	s.admitted("m4", item("user", "b", r))
	s.refused("m5", false, item("user", "b", r)) // which names no rule: its own holds
	named.Key = "c"
	v = s.take("m6", named)
	s.must(s.store.Return(s.ctx, store.Take{Items: []store.Item{named}}, v.Ticket))
	s.admitted("m7", named)
}

func rulesBounded(s *suite) {
	set := guard.Change{Action: guard.ActionSetRule, Limit: "user", Rule: guard.Rule{Unlimited: true},
		Actor: "tester", Reason: "test"}
	for i := range store.MaxSharedRules {
		set.Group = number(i)
		s.must(s.store.Change(s.ctx, set))
	}
	s.must(s.store.Change(s.ctx, set)) // it is there
	set.Group = "one more"
	if err := s.store.Change(s.ctx, set); !errors.Is(err, driver.ErrFull) {
		s.Errorf("one rule too many: %v", err)
	}
	s.change(guard.Change{Action: guard.ActionClearRule, Limit: "user", Group: number(7)})
	s.must(s.store.Change(s.ctx, set))
}

func (s *suite) list(q guard.Query) guard.Page {
	s.Helper()
	p, err := s.store.List(s.ctx, q)
	s.must(err)
	return p
}

func listPages(s *suite) {
	for i := range 25 {
		limit := "user"
		if i%5 == 0 {
			limit = "tenant"
		}
		s.change(guard.Change{Action: guard.ActionBlock, Limit: limit, Key: number(i), For: time.Hour})
	}
	for limit, want := range map[string]int{"": 25, "user": 20, "tenant": 5} {
		seen := map[string]bool{}
		q := guard.Query{Kind: guard.KindBlocked, Limit: limit, Max: 7}
		for {
			p := s.list(q)
			if len(p.Keys) > 7 {
				s.Fatalf("a page of %d", len(p.Keys))
			}
			for _, k := range p.Keys {
				seen[k.Limit+" "+k.Key] = true
				if k.Block == nil || limit != "" && k.Limit != limit {
					s.Errorf("%+v in the list of blocked keys of %q", k, limit)
				}
			}
			if q.Cursor = p.Next; p.Next == "" {
				break
			}
		}
		if len(seen) != want {
			s.Errorf("limit %q has %d blocked keys, want %d", limit, len(seen), want)
		}
	}
}

func audited(s *suite) {
	s.change(guard.Change{Action: guard.ActionBlock, Limit: "user", Key: "a", For: time.Hour})
	s.change(guard.Change{Action: guard.ActionUnblock, Limit: "user", Key: "a"})
	s.change(guard.Change{Action: guard.ActionForceOpen, Key: "billing"})
	all, err := s.store.Audit(s.ctx, 2)
	s.must(err)
	if len(all) != 2 || all[0].Action != guard.ActionForceOpen || all[1].Action != guard.ActionUnblock ||
		all[1].Actor != "tester" ||
		all[1].Reason != "test" || all[1].Key != "a" || time.Since(all[1].At).Abs() > time.Minute {
		s.Errorf("the audit list says %+v", all)
	}
	for i := range 1005 {
		s.change(guard.Change{Action: guard.ActionUnblock, Limit: "user", Key: number(i % 3)})
	}
	all, err = s.store.Audit(s.ctx, 5000)
	if s.must(err); len(all) != 1000 {
		s.Errorf("the audit list has %d entries, want 1000", len(all))
	}
}

func breakersForced(s *suite) {
	other := s.instances()[1]
	s.must2(s.store.Report(s.ctx, "one",
		[]guard.BreakerStatus{{Name: "billing", State: guard.StateOpen, Failures: 7},
			{Name: "mail", State: guard.StateClosed}}))
	s.change(guard.Change{Action: guard.ActionForceClosed, Key: "billing"})
	forced, err := other.Report(s.ctx, "two", []guard.BreakerStatus{{Name: "billing", State: guard.StateClosed}})
	if s.must(err); len(forced) != 1 || forced[0] != (store.Forced{Name: "billing", State: guard.StateClosed}) {
		s.Errorf("%+v are forced, want billing closed", forced)
	}
	all, err := other.Reports(s.ctx)
	s.must(err)
	if len(all) != 3 || all[0].Name != "billing" || all[0].Instance != "one" || all[0].Failures != 7 ||
		all[1].Instance != "two" || all[2].Name != "mail" {
		s.Errorf("the reports are %+v", all)
	}
	s.change(guard.Change{Action: guard.ActionReleaseForce, Key: "billing"})
	if forced, err = other.Report(s.ctx, "two", nil); err != nil || len(forced) != 0 {
		s.Errorf("%+v, %v; want none forced", forced, err)
	}
}

func (s *suite) must2(_ any, err error) {
	s.Helper()
	s.must(err)
}

// survives closes the store, or lets the server restart, and looks for what must be there again.
func survives(s *suite) {
	if s.Reopen == nil {
		s.Skip("nothing survives here")
	}
	r := s.rule(guard.Rule{Limit: 1, Window: time.Hour, Penalty: guard.Penalty{After: 1}})
	s.admitted("m0", item("user", "a", r))
	s.refused("m1", false, item("user", "a", r))
	s.change(guard.Change{Action: guard.ActionBlock, Limit: "user", Key: "b"})
	s.change(guard.Change{Action: guard.ActionWhitelist, Limit: "user", Key: "c"})
	s.change(guard.Change{Action: guard.ActionOverride, Limit: "user", Key: "d", For: time.Hour,
		Rule: *s.rule(guard.Rule{Limit: 2, Window: time.Hour})})
	s.change(guard.Change{Action: guard.ActionForceOpen, Key: "billing"})
	s.change(guard.Change{Action: guard.ActionSetRule, Limit: "tenant", Rule: guard.Rule{Unlimited: true}})
	m, err := s.store.Begin(s.ctx, store.MarkRequest{Name: "dedup", ID: "x", Lease: time.Minute})
	s.must(err)
	s.must(s.store.Complete(s.ctx, store.MarkRequest{Name: "dedup", ID: "x", Token: m.Token, Window: time.Hour}))
	for round := range 2 {
		s.store = s.Reopen(s, s.store)
		s.refused("m2", true, item("user", "a", r))
		if st := s.status("user", "a"); st.Level != 1 || st.Reason != guard.ReasonPenalty {
			s.Errorf("%+v, want the first penalty", st)
		}
		s.refused("m3", true, item("user", "b", r))
		for i := range 5 {
			s.admitted(number(i), item("user", "c", r))
		}
		if st := s.status("user", "d"); st.Override == nil || st.Override.Rule.Limit != 2 {
			s.Errorf("%+v, want an override", st)
		}
		if m, err := s.store.Begin(s.ctx,
			store.MarkRequest{Name: "dedup", ID: "x", Lease: time.Minute}); err != nil || !m.Done {
			s.Errorf("%+v, %v; want done", m, err)
		}
		if f, err := s.store.Report(s.ctx, "one", nil); err != nil || len(f) != 1 || f[0].State != guard.StateOpen {
			s.Errorf("%+v, %v; want billing forced open", f, err)
		}
		if rules, err := s.store.Rules(s.ctx); err != nil || len(rules) != 1 || !rules[0].Rule.Unlimited {
			s.Errorf("%+v, %v; want the rule of tenant", rules, err)
		}
		if all, err := s.store.Audit(s.ctx, 100); err != nil || len(all) != 5 {
			s.Errorf("%d audited changes, %v; want 5 in round %d", len(all), err, round)
		}
	}
	s.must(s.store.Close(s.ctx))
	if _, err := s.store.Status(s.ctx, "user", "a"); s.Virtual && !errors.Is(err, driver.ErrClosed) {
		s.Errorf("a closed store answers %v", err)
	}
}
