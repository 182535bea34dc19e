package guardtest

import (
	"sync"
	"sync/atomic"
	"time"

	"pgregory.net/rapid"

	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/guard/store"
)

func windowIsExact(s *suite) {
	r := s.rule(guard.Rule{Limit: 5, Window: time.Hour})
	for i := range 5 {
		s.admitted(number(i), item("user", "a", r))
	}
	v := s.refused("m5", false, item("user", "a", r))
	s.near("the wait", v.After, time.Hour)
	s.admitted("m6", item("user", "b", r))
	s.admitted("m7", item("tenant", "a", r))
	if used := s.status("user", "a").Used; used != 5 {
		s.Errorf("%d of the window are used, want 5", used)
	}
}

func windowOpens(s *suite) {
	r := s.rule(guard.Rule{Limit: 3, Window: 3 * s.unit})
	for i := range 10 {
		v := s.take(number(i), item("user", "a", r))
		if v.Admitted {
			continue
		}
		if v.After > r.Window {
			s.Fatalf("the wait of %v is longer than the window", v.After)
		}
		if s.Virtual && v.After > time.Nanosecond {
			s.pass(v.After - time.Nanosecond)
			s.refused("early", false, item("user", "a", r))
			v.After = time.Nanosecond
		}
		s.pass(v.After)
		s.admitted("back", item("user", "a", r))
	}
}

func bucketHolds(s *suite) {
	r := s.rule(guard.Rule{Limit: 10, Window: time.Hour, Burst: 3})
	for i := range 3 {
		s.admitted(number(i), item("user", "a", r))
	}
	v := s.refused("m3", false, item("user", "a", r))
	s.near("the wait", v.After, 6*time.Minute)
	if used := s.status("user", "a").Used; used != 3 {
		s.Errorf("%d tokens are used, want 3", used)
	}
}

func bucketRefills(s *suite) {
	r := s.rule(guard.Rule{Limit: 1, Window: 2 * s.unit, Burst: 2})
	for i := range 6 {
		if v := s.take(number(i), item("user", "a", r)); !v.Admitted {
			s.pass(v.After)
			s.admitted("back", item("user", "a", r))
		}
	}
	s.pass(10 * r.Window)
	if v := s.take("after a rest", item("user", "a", r)); !v.Admitted || s.status("user", "a").Used > 1 {
		s.Errorf("after a rest: %+v, %+v; want a full bucket, and not more", v, s.status("user", "a"))
	}
}

func decidedTogether(s *suite) {
	user := s.rule(guard.Rule{Limit: 10, Window: time.Hour})
	all := s.rule(guard.Rule{Limit: 2, Window: time.Hour, Burst: 2})
	s.admitted("m0", item("user", "a", user), item("all", "x", all))
	s.admitted("m1", item("user", "a", user), item("all", "x", all))
	for i := 2; i < 5; i++ {
		if v := s.refused(number(i), false, item("user", "a", user), item("all", "x", all)); v.Item != 1 {
			s.Errorf("item %d refuses, want 1", v.Item)
		}
	}
	if used := s.status("user", "a").Used; used != 2 {
		s.Errorf("the limit that would have admitted them counts %d, want 2", used)
	}
}

func paced(s *suite) {
	r := s.rule(guard.Rule{Limit: 4, Window: time.Hour, Penalty: guard.Penalty{After: 1}})
	late := item("user", "a", r)
	late.Paced = true
	s.admitted("m0", late)
	v := s.refused("m1", false, late)
	s.near("the wait", v.After, 15*time.Minute)
	if v.Penalty != 0 || v.Violations != 0 {
		s.Errorf("%+v: to wait for one's turn is no violation", v)
	}
	s.admitted("m2", item("user", "a", r)) // who did not wait passes
	other := item("user", "b", r)
	other.Paced = true
	s.admitted("m3", other)
	s.change(guard.Change{Action: guard.ActionWhitelist, Limit: "user", Key: "a"})
	s.admitted("m4", late)
	bucket := item("all", "x", s.rule(guard.Rule{Limit: 1, Window: time.Hour, Burst: 2}))
	bucket.Paced = true
	s.admitted("m5", bucket)
	s.admitted("m6", bucket)
}

func returned(s *suite) {
	r := s.rule(guard.Rule{Limit: 2, Window: time.Hour})
	s.admitted("m0", item("user", "a", r))
	v := s.take("m1", item("user", "a", r))
	s.refused("m2", false, item("user", "a", r))
	t := store.Take{ID: "m1", Items: []store.Item{item("user", "a", r)}}
	s.must(s.store.Return(s.ctx, t, v.Ticket))
	if !s.Virtual { // a call that may be sent twice
		s.must(s.store.Return(s.ctx, t, v.Ticket))
	}
	s.admitted("m3", item("user", "a", r))
	s.refused("m4", false, item("user", "a", r))
}

func returnedTokens(s *suite) {
	r := s.rule(guard.Rule{Limit: 1, Window: time.Hour, Burst: 2})
	s.admitted("m0", item("user", "a", r))
	v := s.take("m1", item("user", "a", r))
	s.refused("m2", false, item("user", "a", r))
	s.must(s.store.Return(s.ctx, store.Take{Items: []store.Item{item("user", "a", r)}}, v.Ticket))
	s.admitted("m3", item("user", "a", r))
	s.refused("m4", false, item("user", "a", r))
}

func peek(s *suite) {
	r := s.rule(guard.Rule{Limit: 1, Window: time.Hour, Penalty: guard.Penalty{After: 1}})
	ask := store.Take{ID: "p", Items: []store.Item{item("user", "a", r)}, Peek: true}
	for range 3 {
		if v, err := s.store.Take(s.ctx, ask); err != nil || !v.Admitted {
			s.Fatalf("%+v, %v", v, err)
		}
	}
	s.admitted("m0", item("user", "a", r))
	for range 3 {
		if v, err := s.store.Take(s.ctx, ask); err != nil || v.Admitted || v.Blocked || v.Penalty != 0 {
			s.Fatalf("%+v, %v; want limited, and no penalty", v, err)
		}
	}
}

func oneViolation(s *suite) {
	r := s.rule(guard.Rule{Limit: 1, Window: time.Hour, Penalty: guard.Penalty{After: 3}})
	s.admitted("m0", item("user", "a", r))
	for range 5 {
		if v := s.refused("m1", false, item("user", "a", r)); v.Violations != 1 {
			s.Fatalf("%+v, want one violation", v)
		}
	}
	if v := s.refused("m2", false, item("user", "a", r)); v.Violations != 2 || v.Penalty != 0 {
		s.Fatalf("%+v, want two violations", v)
	}
	if v := s.refused("m3", false, item("user", "a", r)); v.Penalty != time.Hour || v.After != time.Hour {
		s.Fatalf("%+v, want a block of an hour", v)
	}
	v := s.refused("m4", true, item("user", "a", r))
	s.near("the block", v.After, time.Hour)
	if st := s.status("user", "a"); st.Block == nil || st.Level != 1 || st.Reason != guard.ReasonPenalty {
		s.Errorf("%+v, want a block by penalty", st)
	}
	s.admitted("m5", item("user", "b", r))
}

func rowEnds(s *suite) {
	r := s.rule(guard.Rule{Limit: 1, Window: 3 * s.unit, Penalty: guard.Penalty{After: 3}})
	violations := 0
	for i := range 12 {
		v := s.take(number(i), item("user", "a", r))
		if v.Admitted {
			violations = 0
			continue
		}
		if violations++; v.Violations != violations || v.Penalty != 0 {
			s.Fatalf("%+v after %d violations in a row", v, violations)
		}
		if violations == 2 {
			s.pass(v.After)
		}
	}
}

func rowGoesOn(s *suite) {
	r := s.rule(guard.Rule{Limit: 1, Window: 3 * s.unit, Penalty: guard.Penalty{After: 2}})
	s.admitted("m0", item("user", "a", r))
	v := s.refused("m1", false, item("user", "a", r))
	s.pass(v.After)
	s.admitted("m1", item("user", "a", r))
	if v := s.refused("m2", false, item("user", "a", r)); v.Penalty != time.Hour {
		s.Errorf("%+v, want a block: who waited did not pass at once", v)
	}
}

// inLine takes a message that waited for others of its key and was published some time ago.
func (s *suite) inLine(id string, age time.Duration, r *guard.Rule) guard.Verdict {
	s.Helper()
	late := item("user", "a", r)
	late.Paced = true
	v, err := s.store.Take(s.ctx, store.Take{ID: id, Age: age, Items: []store.Item{late}})
	s.must(err)
	if v.Admitted {
		s.Fatalf("message %s passed before its turn: %+v", id, v)
	}
	return v
}

// goesOnTooFast: of a line whose messages come faster than three in an hour, the fourth is the first violation.
func goesOnTooFast(s *suite) {
	r := s.rule(guard.Rule{Limit: 3, Window: time.Hour, Penalty: guard.Penalty{After: 3}})
	s.admitted("first", item("user", "a", r))
	for i := range 6 {
		want, age := max(0, i-2), time.Duration(6-i)*time.Minute
		if v := s.inLine(number(i), age, r); v.Violations != want || (v.Penalty > 0) != (want == 3) {
			s.Errorf("message %d: %+v, want %d violations", i, v, want)
		}
		if want == 3 {
			break
		}
		if v := s.inLine(number(i), age, r); v.Violations != want { // it comes back
			s.Errorf("message %d again: %+v, want %d violations", i, v, want)
		}
	}
	if st := s.status("user", "a"); st.Block == nil || st.Reason != guard.ReasonPenalty {
		s.Errorf("%+v, want a block by penalty", st)
	}
}

// piledUp: messages that came slowly and are handled late, as after a stop of the workers, wait and violate nothing.
func piledUp(s *suite) {
	r := s.rule(guard.Rule{Limit: 3, Window: time.Hour, Penalty: guard.Penalty{After: 1}})
	s.admitted("first", item("user", "a", r))
	for i := range 20 {
		if v := s.inLine(number(i), time.Duration(20-i)*21*time.Minute, r); v.Violations != 0 || v.Penalty != 0 {
			s.Errorf("message %d: %+v", i, v)
		}
	}
}

// paid: a line that was too fast is penalized once, and goes on afterwards, unless more is added to it too fast.
func paid(s *suite) {
	r := s.rule(guard.Rule{Limit: 3, Window: time.Hour, Penalty: guard.Penalty{After: 1, Block: 2 * s.unit}})
	s.admitted("first", item("user", "a", r))
	for i := range 4 {
		if v := s.inLine(number(i), time.Minute, r); (v.Penalty > 0) != (i == 3) {
			s.Fatalf("message %d: %+v", i, v)
		}
	}
	s.pass(2 * s.unit)
	for i := 4; i < 10; i++ {
		if v := s.inLine(number(i), time.Minute, r); v.Penalty != 0 || v.Blocked {
			s.Errorf("message %d, published before the block: %+v", i, v)
		}
	}
	if v := s.inLine("m10", 0, r); v.Penalty != 4*s.unit {
		s.Errorf("%+v, want another block", v)
	}
	s.change(guard.Change{Action: guard.ActionUnblock, Limit: "user", Key: "a"})
	for i := 11; i < 16; i++ {
		if v := s.inLine(number(i), time.Minute, r); v.Penalty != 0 || v.Blocked {
			s.Errorf("message %d, published before an operator unblocked its key: %+v", i, v)
		}
	}
}

func penaltiesGrow(s *suite) {
	block, history := time.Hour, 24*time.Hour
	if !s.Virtual {
		block, history = 2*s.unit, time.Hour
	}
	r := s.rule(guard.Rule{Limit: 1, Window: 3 * block,
		Penalty: guard.Penalty{After: 1, Block: block, Max: 24 * block, History: history}})
	if !s.Virtual {
		r.Penalty.Max = 4 * block
	}
	s.admitted("first", item("user", "a", r))
	want := block
	for i := range 7 {
		v := s.take(number(i), item("user", "a", r))
		for v.Admitted { // the window may have opened while it was blocked
			v = s.take(number(i), item("user", "a", r))
		}
		if v.Penalty != want {
			s.Fatalf("block %d lasts %v, want %v (%+v)", i+1, v.Penalty, want, v)
		}
		if want = min(2*want, r.Penalty.Max); !s.Virtual && i == 3 {
			return
		}
		s.pass(v.After)
	}
	s.pass(history)
	s.admitted("after a good day", item("user", "a", r))
	if v := s.refused("and a bad one", false, item("user", "a", r)); v.Penalty != block {
		s.Errorf("after a good day the block lasts %v, want %v", v.Penalty, block)
	}
}

func unlimitedPasses(s *suite) {
	for i := range 50 {
		s.admitted(number(i), item("user", "a", &guard.Rule{Unlimited: true}))
	}
}

// instances returns what ten processes see of one store.
func (s *suite) instances() []guard.Store {
	all := []guard.Store{s.store}
	for len(all) < 10 {
		peer := s.store
		if s.Peer != nil {
			peer = s.Peer(s, s.store)
			s.Cleanup(func() { _ = peer.Close(s.ctx) })
		}
		all = append(all, peer)
	}
	return all
}

func tenInstances(s *suite) {
	for _, r := range []*guard.Rule{
		s.rule(guard.Rule{Limit: 100, Window: time.Hour}),
		s.rule(guard.Rule{Limit: 1, Window: 100 * time.Hour, Burst: 100}),
	} {
		var admitted atomic.Int64
		var wg sync.WaitGroup
		for _, one := range s.instances() {
			for range 4 {
				wg.Go(func() {
					for range 10 {
						v, err := one.Take(s.ctx, store.Take{Items: []store.Item{item("all", r.String(), r)}})
						if err != nil {
							s.Error(err)
						}
						if v.Admitted {
							admitted.Add(1)
						}
					}
				})
			}
		}
		wg.Wait()
		if n := admitted.Load(); n != 100 {
			s.Errorf("%v: ten instances admitted %d, want 100", r, n)
		}
	}
}

// neverMore lets ten instances ask at random times, and looks at every window afterwards.
func neverMore(s *suite) {
	stores := s.instances()
	round := 0
	rapid.Check(s, func(t *rapid.T) {
		round++
		r := s.rule(guard.Rule{Limit: rapid.IntRange(1, 8).Draw(t, "limit"),
			Window: rapid.SampledFrom([]time.Duration{s.unit / 50, s.unit / 20, s.unit / 10}).Draw(t, "window")})
		var admitted []span
		for i := range rapid.IntRange(1, 40).Draw(t, "messages") {
			if pause := rapid.IntRange(0, 4).Draw(t, "pause"); pause == 0 {
				s.pass(rapid.SampledFrom([]time.Duration{r.Window / 7, r.Window / 2, r.Window}).Draw(t, "wait"))
			}
			one := stores[rapid.IntRange(0, len(stores)-1).Draw(t, "instance")]
			asked := time.Now()
			v, err := one.Take(s.ctx, store.Take{ID: number(i), Items: []store.Item{item("all", number(round), r)}})
			if err != nil {
				t.Fatal(err)
			}
			if v.Admitted {
				admitted = append(admitted, span{asked, time.Now()})
			} else if v.After > r.Window {
				t.Fatalf("a wait of %v in a window of %v", v.After, r.Window)
			}
		}
		for i := r.Limit; i < len(admitted); i++ {
			if apart := admitted[i].to.Sub(admitted[i-r.Limit].from); apart < r.Window {
				t.Fatalf("%d messages within %v, the limit is %v", r.Limit+1, apart, r)
			}
		}
	})
}

// span is when something happened at the earliest and at the latest.
type span struct{ from, to time.Time }
