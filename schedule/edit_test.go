package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/faulty"
	"github.com/ferrymq/ferry/schedule"
)

// An edit, a pause or a deletion takes effect at once, whenever it comes: before the tick, at its moment, after it. No
// tick fires twice, and none is lost that the schedule still has.
func TestEditsAroundATick(t *testing.T) {
	const hour = time.Hour
	offsets := []time.Duration{-time.Minute, -time.Millisecond, 0, time.Millisecond, time.Second, 20 * time.Second}
	for _, runs := range []bool{true, false} { // when the tick is due: it is taken then, or later
		for _, off := range offsets {
			for _, what := range []string{"body", "spec", "pause", "delete"} {
				t.Run(fmt.Sprintf("%s %v %v", what, off, runs), func(t *testing.T) {
					virtual(t, nil, func(r *rig) {
						old := schedule.Schedule{Name: "a", Spec: "@hourly", Message: message("old")}
						r.put(old)
						if runs {
							r.run()
						}
						r.pass(hour + off)
						switch what {
						case "body":
							old.Message = message("new")
							r.put(old)
						case "spec":
							old.Spec = "@every 30m"
							r.put(old)
						case "pause":
							r.ok(r.s.Pause(r.Context(), "a"))
						case "delete":
							r.ok(r.s.Delete(r.Context(), "a"))
						}
						r.pass(hour + 30*time.Second)
						r.run()
						r.pass(3 * hour)
						after := off > 0 || off == 0 && runs // at the moment itself the tick goes first: the rig waits for it
						want := map[string][]string{
							"body":   {"1h0m0s", "2h0m0s", "3h0m0s"},
							"spec":   {"1h0m0s", "1h30m0s", "2h0m0s", "2h30m0s", "3h0m0s"},
							"pause":  {"1h0m0s"},
							"delete": {"1h0m0s"},
						}[what]
						if fires := runs && after || what == "body" || what == "spec" && off < 0; !fires {
							want = want[1:] // the tick before the edit was not taken yet, and what was changed or stopped owes nothing
						}
						var got []string
						for i, f := range r.fired() {
							tick, err := time.Parse(time.RFC3339, f.tick)
							r.ok(err)
							got = append(got, tick.Sub(begin).String())
							if new := what == "body" && !(i == 0 && runs && after); new != (f.body == "new") {
								r.Errorf("tick %s has body %s", f.tick, f.body)
							}
						}
						if !slices.Equal(got, want) {
							r.Errorf("got %v, want %v", got, want)
						}
						if n := r.lying(); what == "pause" || what == "delete" {
							if n != 0 {
								r.Errorf("%d ticks lie there", n)
							}
						} else if n != 1 {
							r.Errorf("%d ticks lie there", n)
						}
					})
				})
			}
		}
	}
}

// An edit that crosses the settlement of a tick: it was taken by who had read the old schedule.
func TestEditCrossesATick(t *testing.T) {
	for _, what := range []string{"body", "spec", "pause", "delete", "again"} {
		t.Run(what, func(t *testing.T) {
			virtual(t, nil, func(r *rig) {
				old := schedule.Schedule{Name: "a", Spec: "@hourly", Message: message("old")}
				r.put(old)
				r.run()
				r.faults.Set(faulty.Settle, ticks(faulty.Once(func(context.Context, faulty.Call, func()) error {
					switch what {
					case "body":
						old.Message = message("new")
						r.put(old)
					case "spec":
						old.Spec = "30 * * * *"
						r.put(old)
					case "pause":
						r.ok(r.s.Pause(r.Context(), "a"))
					case "delete":
						r.ok(r.s.Delete(r.Context(), "a"))
					case "again":
						r.ok(r.s.Delete(r.Context(), "a"))
						r.put(old)
					}
					return nil
				})))
				r.pass(3*time.Hour + time.Minute)
				want := map[string][]time.Duration{
					"body": {time.Hour, 2 * time.Hour, 3 * time.Hour}, "again": {time.Hour, 2 * time.Hour, 3 * time.Hour},
					"spec": {time.Hour, 90 * time.Minute, 150 * time.Minute}, "pause": {time.Hour}, "delete": {time.Hour},
				}
				r.expect(want[what]...)
			})
		})
	}
}

// Pausing and resuming change nothing else; ticks of a pause are not missed ones.
func TestPauseAndResume(t *testing.T) {
	virtual(t, nil, func(r *rig) {
		r.put(schedule.Schedule{Name: "a", Spec: "@every 10s", Missed: schedule.All})
		r.run()
		r.pass(10 * time.Second)
		r.ok(r.s.Pause(r.Context(), "a"))
		r.ok(r.s.Pause(r.Context(), "a"))
		if st := r.status("a"); st.State != schedule.Paused || !st.Next.IsZero() ||
			!st.Last.Equal(begin.Add(10*time.Second)) {
			r.Errorf("%+v", st)
		}
		r.pass(10 * time.Minute)
		r.expect(10 * time.Second)
		r.ok(r.s.Resume(r.Context(), "a"))
		revision := r.status("a").Revision
		r.ok(r.s.Resume(r.Context(), "a"))
		if st := r.status("a"); st.State != schedule.Active || st.Revision != revision ||
			!st.Next.Equal(begin.Add(10*time.Minute+10*time.Second)) {
			r.Errorf("%+v", st)
		}
		r.pass(10*time.Minute + 20*time.Second)
		r.expect(10*time.Minute+10*time.Second, 10*time.Minute+20*time.Second)
		r.wants(r.s.Pause(r.Context(), "b"), ferry.ErrNotFound)
		r.wants(r.s.Resume(r.Context(), "b"), ferry.ErrNotFound)
		r.wants(r.s.Delete(r.Context(), "b"), ferry.ErrNotFound)
	})
}

// A trigger is exactly one fire more, of a paused schedule too, and without anybody who runs schedules.
func TestTrigger(t *testing.T) {
	virtual(t, nil, func(r *rig) {
		r.put(schedule.Schedule{Name: "a", Spec: "@hourly", Paused: true})
		r.faults.Set(faulty.Publish, faulty.Once(faulty.Lose(driver.ErrUnknown)))
		for range 2 {
			_, err := r.s.Trigger(r.Context(), "a")
			r.ok(err)
		}
		r.pass(2 * time.Hour)
		fires := r.fired()
		if len(fires) != 2 || fires[0].name != "a" || fires[0].tick != "" || fires[0].id == fires[1].id {
			r.Errorf("%+v", fires)
		}
		_, err := r.s.Trigger(r.Context(), "b")
		r.wants(err, ferry.ErrNotFound)
	})
}

// The last tick is at Until at the latest; a later Until goes on.
func TestUntil(t *testing.T) {
	virtual(t, nil, func(r *rig) {
		s := schedule.Schedule{Name: "a", Spec: "@every 10s", Until: begin.Add(20 * time.Second)}
		r.put(s)
		r.run()
		r.pass(time.Minute)
		r.expect(10*time.Second, 20*time.Second)
		if st := r.status("a"); st.State != schedule.Ended || r.lying() != 0 {
			r.Errorf("%+v, and %d ticks", st, r.lying())
		}
		r.put(s) // every instance that starts does
		s.Until = begin.Add(75 * time.Second)
		r.put(s)
		r.pass(2 * time.Minute)
		r.expect(70 * time.Second)
	})
}

// What is wrong is said, with what to do, and changes nothing.
func TestWrongSchedules(t *testing.T) {
	virtual(t, nil, func(r *rig) {
		right := schedule.Schedule{Name: "a", Spec: "@hourly", Message: message("a")}
		r.put(right)
		before := r.status("a")
		with := func(change func(s *schedule.Schedule)) schedule.Schedule {
			s := right
			s.Message = s.Message.Clone()
			change(&s)
			return s
		}
		for part, s := range map[string]schedule.Schedule{
			"has no name":                       with(func(s *schedule.Schedule) { s.Name = "" }),
			"has 257 bytes":                     with(func(s *schedule.Schedule) { s.Name = strings.Repeat("n", 257) }),
			`the name "a\n" of a schedule`:      with(func(s *schedule.Schedule) { s.Name = "a\n" }),
			`column "hour"`:                     with(func(s *schedule.Schedule) { s.Spec = "0 25 * * *" }),
			`"Nowhere" is not known`:            with(func(s *schedule.Schedule) { s.Zone = "Nowhere" }),
			"for missed ticks":                  with(func(s *schedule.Schedule) { s.Missed = "twice" }),
			"negative jitter":                   with(func(s *schedule.Schedule) { s.Jitter = -1 }),
			"a jitter of 1h0m0s":                with(func(s *schedule.Schedule) { s.Jitter = time.Hour }),
			"has no message":                    with(func(s *schedule.Schedule) { s.Message = nil }),
			"a message with an id":              with(func(s *schedule.Schedule) { s.Message.ID = "x" }),
			"a message with a time":             with(func(s *schedule.Schedule) { s.Message.At = begin }),
			"one of Ferry's own":                with(func(s *schedule.Schedule) { s.Message.Topic = schedule.Topic }),
			"topic name":                        with(func(s *schedule.Schedule) { s.Message.Topic = "no topic" }),
			"priority 9":                        with(func(s *schedule.Schedule) { s.Message.Priority = 9 }),
			"which is past":                     with(func(s *schedule.Schedule) { s.Until = begin }),
			"has no tick until":                 with(func(s *schedule.Schedule) { s.Until = begin.Add(time.Minute) }),
			"has no tick after":                 with(func(s *schedule.Schedule) { s.Spec = "@at 1999-12-31T00:00:00Z" }),
			`2000-01-01T00:00:00Z: "0 0 30 2 *`: with(func(s *schedule.Schedule) { s.Spec = "0 0 30 2 *" }),
			`: "@at 9999-01-01T00:00:00Z"`:      with(func(s *schedule.Schedule) { s.Spec = "@at 9999-01-01T00:00:00Z" }),
			"48 KB":                             with(func(s *schedule.Schedule) { s.Message.Body = make([]byte, 60_000) }),
		} {
			err := r.s.Put(r.Context(), s)
			var e *ferry.Error
			if !errors.As(err, &e) || e.Hint == "" || !strings.Contains(err.Error(), part) {
				r.Errorf("%v, want one with a hint and %q", err, part)
			}
			if !strings.Contains(part, "name") && s.Name == right.Name && e != nil && !strings.HasPrefix(e.Text, "schedule a") {
				r.Errorf("%q does not begin with the schedule it is about", e.Text)
			}
		}
		p, err := r.s.List(r.Context(), schedule.Query{})
		r.ok(err)
		if len(p.Schedules) != 1 || p.Schedules[0].Revision != before.Revision || r.lying() != 1 {
			r.Errorf("%+v, and %d ticks", p, r.lying())
		}
	})
}

// A hook that refuses the topic refuses the schedule; one that refuses it later keeps the message back, and the
// schedule goes on.
func TestRefusedTopic(t *testing.T) {
	virtual(t, nil, func(r *rig) {
		var no atomic.Bool
		b, err := ferry.New(shared{r.d},
			ferry.Options{Hooks: ferry.Hooks{Authorize: func(_ context.Context, _ ferry.Access) error {
				if no.Load() {
					return errors.New("not for you")
				}
				return nil
			}}})
		r.ok(err)
		r.b = b
		r.s = r.scheduler()
		r.put(schedule.Schedule{Name: "a", Spec: "@every 10s"})
		r.run()
		r.pass(15 * time.Second)
		no.Store(true)
		r.wants(r.s.Put(r.Context(), schedule.Schedule{Name: "b", Spec: "@daily", Message: message("b")}), ferry.ErrRefused)
		r.pass(25 * time.Second)
		if st := r.status("a"); !strings.Contains(st.Problem, "not for you") {
			r.Errorf("%+v", st)
		}
		no.Store(false)
		r.pass(30 * time.Second)
		r.expect(10*time.Second, 30*time.Second)
		if st := r.status("a"); st.Problem != "" {
			r.Errorf("%+v", st)
		}
	})
}

// Listings come in pages, in order of names, and by prefix.
func TestList(t *testing.T) {
	virtual(t, nil, func(r *rig) {
		for i := range 25 {
			r.put(schedule.Schedule{Name: fmt.Sprintf("tenant-%d/report-%02d", i%2, i), Spec: "@daily"})
		}
		var names []string
		for q := (schedule.Query{Prefix: "tenant-1/", Limit: 5}); ; {
			p, err := r.s.List(r.Context(), q)
			r.ok(err)
			for _, st := range p.Schedules {
				names = append(names, st.Name)
			}
			if q.Cursor = p.Next; p.Next == "" {
				break
			}
		}
		if len(names) != 12 || !slices.IsSorted(names) || names[0] != "tenant-1/report-01" {
			r.Errorf("%v", names)
		}
	})
}
