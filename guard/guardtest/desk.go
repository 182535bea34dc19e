package guardtest

import (
	"errors"
	"time"

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
	if st := s.status("user", "a"); st.Block == nil || !st.Block.Until.IsZero() || st.Actor != "tester" || st.Reason != "test" {
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
	s.change(guard.Change{Action: guard.ActionOverride, Limit: "user", Key: "a", For: time.Hour, Rule: *s.rule(guard.Rule{Limit: 3, Window: time.Hour})})
	s.admitted("m2", item("user", "a", r))
	s.admitted("m3", item("user", "a", r))
	s.refused("m4", false, item("user", "a", r))
	if st := s.status("user", "a"); st.Override == nil || st.Override.Rule.Limit != 3 || st.Rule.Limit != 1 || st.Used != 3 {
		s.Errorf("%+v, want an override of 3", st)
	}
	if p := s.list(guard.Query{Kind: guard.KindOverridden}); len(p.Keys) != 1 || p.Keys[0].Key != "a" {
		s.Errorf("%+v are overridden, want a", p.Keys)
	}
	s.change(guard.Change{Action: guard.ActionClear, Limit: "user", Key: "a"})
	s.refused("m5", false, item("user", "a", r))
	s.admitted("m6", item("user", "b", r))
	s.change(guard.Change{Action: guard.ActionOverride, Limit: "user", Key: "b", For: 2 * s.unit, Rule: guard.Rule{Unlimited: true}})
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
	if len(all) != 2 || all[0].Action != guard.ActionForceOpen || all[1].Action != guard.ActionUnblock || all[1].Actor != "tester" ||
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
	s.must2(s.store.Report(s.ctx, "one", []guard.BreakerStatus{{Name: "billing", State: guard.StateOpen, Failures: 7}, {Name: "mail", State: guard.StateClosed}}))
	s.change(guard.Change{Action: guard.ActionForceClosed, Key: "billing"})
	forced, err := other.Report(s.ctx, "two", []guard.BreakerStatus{{Name: "billing", State: guard.StateClosed}})
	if s.must(err); len(forced) != 1 || forced[0] != (store.Forced{Name: "billing", State: guard.StateClosed}) {
		s.Errorf("%+v are forced, want billing closed", forced)
	}
	all, err := other.Reports(s.ctx)
	s.must(err)
	if len(all) != 3 || all[0].Name != "billing" || all[0].Instance != "one" || all[0].Failures != 7 || all[1].Instance != "two" || all[2].Name != "mail" {
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
	s.change(guard.Change{Action: guard.ActionOverride, Limit: "user", Key: "d", For: time.Hour, Rule: *s.rule(guard.Rule{Limit: 2, Window: time.Hour})})
	s.change(guard.Change{Action: guard.ActionForceOpen, Key: "billing"})
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
		if m, err := s.store.Begin(s.ctx, store.MarkRequest{Name: "dedup", ID: "x", Lease: time.Minute}); err != nil || !m.Done {
			s.Errorf("%+v, %v; want done", m, err)
		}
		if f, err := s.store.Report(s.ctx, "one", nil); err != nil || len(f) != 1 || f[0].State != guard.StateOpen {
			s.Errorf("%+v, %v; want billing forced open", f, err)
		}
		if all, err := s.store.Audit(s.ctx, 100); err != nil || len(all) != 4 {
			s.Errorf("%d audited changes, %v; want 4 in round %d", len(all), err, round)
		}
	}
	s.must(s.store.Close(s.ctx))
	if _, err := s.store.Status(s.ctx, "user", "a"); s.Virtual && !errors.Is(err, driver.ErrClosed) {
		s.Errorf("a closed store answers %v", err)
	}
}
