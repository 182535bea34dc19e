package state

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// accused demands one problem that says so, or none.
func accused(t *testing.T, name, want string, problems []string) {
	t.Helper()
	got := strings.Join(problems, "\n")
	if (want == "") != (got == "") || !strings.Contains(got, want) {
		t.Errorf("%s: %q, want %q", name, got, want)
	}
}

// Each broken promise of leaders is seen, and what may be innocent is not accused.
func TestLeaderJudge(t *testing.T) {
	t.Parallel()
	write := func(p string, epoch, revision uint64) Event {
		return Event{Kind: kindWrite, Process: p, Epoch: epoch, Revision: revision}
	}
	for name, c := range map[string]struct {
		tape []Event
		want string
	}{
		"in order":           {[]Event{write("a", 5, 6), write("a", 5, 7), write("b", 8, 9)}, ""},
		"noted out of order": {[]Event{write("b", 8, 9), write("a", 5, 7)}, ""},
		"late and refused": {[]Event{write("b", 8, 9), {Kind: kindWrite, Process: "a", Epoch: 5, Refused: true,
			Late: true}}, ""},
		"older and accepted": {[]Event{write("b", 8, 9), write("a", 5, 10)}, "after one of epoch 8"},
		"late and accepted": {[]Event{{Kind: kindWrite, Process: "a", Epoch: 5, Revision: 10, Late: true}},
			"a late write of epoch 5"},
		"an epoch of two":     {[]Event{write("a", 5, 6), write("b", 5, 7)}, "is of a and of b"},
		"a revision of twice": {[]Event{write("a", 5, 6), write("a", 5, 6)}, "given twice"},
		"another group": {[]Event{write("b", 8, 9), {Kind: kindWrite, Group: 2, Process: "a", Epoch: 5, Revision: 10}},
			""},
		"two contexts": {[]Event{{Kind: kindLeads, Process: "a", Epoch: 5, At: 1},
			{Kind: kindLeads, Process: "b", Epoch: 8, At: 10},
			{Kind: kindEnded, Process: "a", Epoch: 5, At: 11}}, "ended 1ns later"},
		"two contexts by a stall": {[]Event{{Kind: kindLeads, Process: "a", Epoch: 5, At: 1},
			{Kind: kindLeads, Process: "b", Epoch: 8, At: 10},
			{Kind: kindStall, Process: "a", At: 10, Stalled: 2}, {Kind: kindEnded, Process: "a", Epoch: 5, At: 11}}, ""},
		"two contexts by a stall of another": {[]Event{{Kind: kindLeads, Process: "a", Epoch: 5, At: 1},
			{Kind: kindLeads, Process: "b", Epoch: 8, At: 10},
			{Kind: kindStall, Process: "b", At: 10, Stalled: 2}, {Kind: kindEnded, Process: "a", Epoch: 5, At: 11}},
			"ended 1ns later"},
		"two contexts by a pause": {[]Event{{Kind: kindLeads, Process: "a", Epoch: 5, At: 1},
			{Kind: kindHarm, Process: "a", Note: paused, At: 3},
			{Kind: kindLeads, Process: "b", Epoch: 8, At: 10}, {Kind: kindEnded, Process: "a", Epoch: 5, At: 11}}, ""},
		"a pause before": {[]Event{{Kind: kindHarm, Process: "a", Note: paused, At: 0},
			{Kind: kindLeads, Process: "a", Epoch: 5, At: 1},
			{Kind: kindLeads, Process: "b", Epoch: 8, At: 10}, {Kind: kindEnded, Process: "a", Epoch: 5, At: 11}},
			"ended 1ns later"},
	} {
		accused(t, name, c.want, judgeLeaders(c.tape).problems)
	}
}

// Each broken promise of ticks is seen.
func TestTickJudge(t *testing.T) {
	t.Parallel()
	begun := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(s float64) time.Time { return begun.Add(time.Duration(s * float64(time.Second))) }
	for name, c := range map[string]struct {
		change  func(fires []fire) []fire
		running []time.Time
		kills   []time.Time
		stalled time.Duration
		want    string
	}{
		"all of them": {},
		"doubled": {change: func(f []fire) []fire { return append(f, f[7]) },
			want: "doubled: tick 00:00:08.000 of s00"},
		"missing": {change: func(f []fire) []fire { return append(f[:7:7], f[8:]...) },
			want: "missing: tick 00:00:08.000 of s00"},
		"the first":  {change: func(f []fire) []fire { return f[1:] }, want: "s00 began with tick 00:00:02.000"},
		"a schedule": {change: func(f []fire) []fire { return f[20:] }, want: "missing: 39 of 40 schedules fired"},
		"early": {change: func(f []fire) []fire { f[7].published = at(7.999); return f },
			want: "early: tick 00:00:08.000"},
		"late": {change: func(f []fire) []fire { f[7].published = at(12.5); return f },
			want: "late: tick 00:00:08.000"},
		"stalled": {change: func(f []fire) []fire { f[7].published = at(12.5); return f }, stalled: time.Second},
		"nobody ran": {change: func(f []fire) []fire { f[7].published = at(12.5); return f },
			running: []time.Time{at(9)}},
		"ran already": {change: func(f []fire) []fire { f[7].published = at(12.5); return f },
			running: []time.Time{at(8.4)}, want: "late: tick 00:00:08.000"},
		"behind a late one": {change: func(
			f []fire) []fire {
			f[7].published, f[8].published = at(11.9), at(15.8)
			return f
		}},
		"of two kills": {change: func(f []fire) []fire { f[7].published = at(14.5); return f },
			kills: []time.Time{at(8), at(11)}},
		"of one kill": {change: func(f []fire) []fire { f[7].published = at(14.5); return f },
			kills: []time.Time{at(8)}, want: "late: tick 00:00:08.000"},
		"of two kills, too often": {
			change: func(f []fire) []fire { f[7].published, f[33].published = at(14.5), at(18.5); return f },
			kills:  []time.Time{at(8), at(11), at(16)}, want: "after 2 of 3 kills"},
		"of the end": {change: func(f []fire) []fire { f[18].published = at(25); return f }},
	} {
		var fires []fire
		for i := range schedules {
			for tick := 1; tick <= 20; tick++ {
				fires = append(fires, fire{fmt.Sprintf("s%02d", i), at(float64(tick)), at(float64(tick) + 0.01)})
			}
		}
		if c.change != nil {
			fires = c.change(fires)
		}
		j := &tickJudge{begun: begun, ended: at(20.5), late: 4 * time.Second, running: c.running, kills: c.kills,
			stalled: func(time.Time, time.Time) time.Duration { return c.stalled }}
		j.judge(fires)
		accused(t, name, c.want, j.problems)
	}
}

// script is a tape of calls, each a second long and a second after the one before, unless it is said otherwise.
type script struct {
	events []Event
	now    int64
	ops    int
}

const second = int64(time.Second)

// did adds a call and its answer.
func (s *script) did(p string, w *write, answer Event) *script { return s.took(p, w, answer, second) }

func (s *script) took(p string, w *write, answer Event, long int64) *script {
	s.ops++
	name := answer.Name
	if w != nil {
		name = w.Name
	}
	answer.Name = ""
	s.events = append(s.events, Event{At: s.now, Process: p, Kind: kindCall, Op: s.ops, Name: name, Write: w})
	answer.At, answer.Process, answer.Kind, answer.Op = s.now+long, p, kindAnswer, s.ops
	s.events = append(s.events, answer)
	s.now += long + second
	return s
}

// dies adds a call without an answer.
func (s *script) dies(p string, w *write) *script {
	s.did(p, w, Event{})
	s.events = s.events[:len(s.events)-1]
	return s
}

func (s *script) waits(d time.Duration) *script { s.now += int64(d); return s }

// ok is the answer of a write that was applied, no of one that was refused, saw of a read or of a conflict.
func ok(revision, epoch uint64) Event { return Event{Revision: revision, Epoch: epoch} }
func saw(name, id string, revision, epoch uint64) Event {
	return Event{Name: name, Found: &found{id, revision, epoch}}
}
func no(e Event, err errKind) Event { e.Err, e.Name = err, ""; return e }

// Each broken promise of named values is seen, and what may be innocent is not accused.
func TestValuesJudge(t *testing.T) {
	t.Parallel()
	put := func(id, name string, c driver.Condition) *write { return &write{ID: id, Name: name, If: c} }
	lasting := func(w *write, ttl time.Duration) *write { w.TTL = ttl; return w }
	under := func(w *write, epoch uint64) *write { w.Fence = &driver.Fence{Name: "l", Epoch: epoch}; return w }
	remove := func(id, name string) *write { return &write{ID: id, Name: name, Delete: true} }
	nothing := func(name string) Event { return Event{Name: name} }
	any := driver.Condition(0)
	tapes := map[string]struct {
		s    *script
		want string
	}{
		"one after the other": {new(script).did("a", put("1", "v", driver.Absent), ok(5, 5)).did("b", put("2", "v", 5),
			ok(6, 5)).did("a", nil, saw("v", "2", 6, 5)), ""},
		"a lost update": {new(script).did("a", put("1", "v", any), ok(5, 5)).did("a", put("2", "v", 5),
			ok(6, 5)).did("b", put("3", "v", 5), ok(7, 5)), "replaced revision 5"},
		"absent although there": {new(script).did("a", put("1", "v", any), ok(5, 5)).did("b", put("2", "v", driver.Absent),
			ok(6, 5)), "demanded that there is nothing"},
		"two of them absent": {new(script).did("a", put("1", "v", driver.Absent), ok(5, 5)).did("b",
			put("2", "v", driver.Absent), ok(6, 6)), "began anew"},
		"a revision that falls": {new(script).did("a", put("1", "v", any), ok(9, 9)).did("b", put("2", "w", any), ok(5, 5)),
			"was called after"},
		"a revision of two": {new(script).did("a", put("1", "v", any), ok(9, 9)).did("b", put("2", "w", any), ok(9, 9)),
			"has the revision of"},
		"applied twice": {new(script).did("a", put("1", "v", any), ok(5, 5)).did("a", put("1", "v", any), ok(6, 5)),
			"was applied twice"},
		"refused and there": {new(script).did("a", put("0", "v", any), ok(4, 4)).did("a", put("1", "v", driver.Absent),
			no(saw("v", "0", 4, 4), conflict)).
			did("b", nil, saw("v", "1", 5, 4)), "was refused, and b saw it"},
		"from nowhere": {new(script).did("b", nil, saw("v", "1", 5, 5)), "which nobody had written"},
		"unknown and there": {new(script).dies("a", put("1", "v", any)).did("b", nil, saw("v", "1", 5, 5)).did("b",
			put("2", "v", 5), ok(6, 5)), ""},
		"an epoch of nobody":   {new(script).did("a", put("1", "v", any), ok(5, 4)), "which nobody began"},
		"an epoch of somebody": {new(script).dies("b", put("0", "v", any)).did("a", put("1", "v", any), ok(5, 4)), ""},
		"ended early": {new(script).did("a", lasting(put("1", "v", any), time.Minute), ok(5, 5)).did("b",
			put("2", "v", any), ok(6, 6)), "had not ended"},
		"ended in time": {new(script).did("a", lasting(put("1", "v", any), 5*time.Second),
			ok(5, 5)).waits(3*time.Second).did("b", put("2", "v", any), ok(6, 6)), ""},
		"ended late": {new(script).did("a", lasting(put("1", "v", any), 5*time.Second),
			ok(5, 5)).waits(6*time.Second).did("b", put("2", "v", any), ok(6, 5)), "had ended"},
		"renewed by somebody dead": {new(script).did("a", lasting(put("1", "v", any), 5*time.Second), ok(5, 5)).dies("c",
			put("3", "v", any)).waits(6*time.Second).did("b", put("2", "v", any), ok(6, 5)), ""},
		"deleted and there": {new(script).did("a", put("1", "v", any), ok(5, 5)).did("a", remove("2", "v"),
			ok(0, 0)).did("b", put("3", "v", any), ok(7, 5)), "had ended"},
		"deleted and anew": {new(script).did("a", put("1", "v", any), ok(5, 5)).did("a", remove("2", "v"),
			ok(0, 0)).did("b", put("3", "v", any), ok(7, 7)), ""},
		"a stale read": {new(script).did("a", put("1", "v", any), ok(5, 5)).did("a", put("2", "v", any),
			ok(6, 5)).did("b", nil, saw("v", "1", 5, 5)), "had been answered before"},
		"nothing read": {new(script).did("a", put("1", "v", any), ok(5, 5)).did("b", nil, nothing("v")),
			"found nothing under v"},
		"nothing after a deletion": {new(script).did("a", put("1", "v", any), ok(5, 5)).dies("a", remove("2", "v")).did("b",
			nil, nothing("v")), ""},
		"read after its end": {new(script).did("a", lasting(put("1", "v", any), 2*time.Second),
			ok(5, 5)).waits(5*time.Second).did("b", nil, saw("v", "1", 5, 5)),
			"which had ended"},
		"a conflict with what was asked": {new(script).did("a", put("1", "v", any), ok(5, 5)).did("b", put("2", "v", 5),
			no(saw("v", "1", 5, 5), conflict)), "refused by what it demanded"},
		"a conflict with nothing": {new(script).did("b", put("2", "v", driver.Absent), no(Event{}, conflict)),
			"refused by what it demanded"},
		"a fence that holds": {new(script).did("a", put("1", "l", any), ok(5, 5)).did("a",
			under(put("2", "v", any), 5), ok(6, 6)), ""},
		"an older fence": {new(script).did("a", put("1", "l", any), ok(5, 5)).did("a", remove("2", "l"), ok(0, 0)).did("b",
			put("3", "l", any), ok(7, 7)).
			did("a", under(put("4", "v", any), 5), ok(8, 8)), "was applied under epoch 5"},
		"a fence that is over": {new(script).did("a", lasting(put("1", "l", any), 2*time.Second),
			ok(5, 5)).waits(5*time.Second).did("a", under(put("4", "v", any), 5), ok(8, 8)),
			"which had ended"},
		"a fence refused": {new(script).did("a", put("1", "l", any), ok(5, 5)).did("a", under(put("2", "v", any), 5),
			no(Event{}, leaseLost)), "which had not ended"},
		"an older fence deletes": {new(script).did("a", put("1", "l", any), ok(5, 5)).did("a", remove("2", "l"),
			ok(0, 0)).did("b", put("3", "l", any), ok(7, 7)).
			did("a", under(remove("4", "v"), 5), ok(0, 0)), "deleted v under epoch 5"},
		"a fence that is over deletes": {new(script).did("a", lasting(put("1", "l", any), 2*time.Second),
			ok(5, 5)).waits(5*time.Second).did("a", under(remove("4", "v"), 5), ok(0, 0)),
			"which had ended"},
		"a stale deletion": {new(script).did("a", put("1", "v", any), ok(5, 5)).did("a", put("2", "v", any), ok(6, 5)).
			did("b", &write{ID: "3", Name: "v", Delete: true, If: 5}, ok(0, 0)), "deleted revision 5"},
		"slow": {new(script).took("a", put("1", "v", any), ok(5, 5), 4*second), "waited for 4s"},
	}
	for name, c := range tapes {
		accused(t, name, c.want, judgeValues(c.s.events).problems)
	}
	harmed := new(script).took("a", put("1", "v", any), ok(5, 5), 4*second)
	harmed.events = append(harmed.events, Event{Kind: kindHarm, Process: "a", At: second, Note: cutOff},
		Event{Kind: kindHeal, Process: "a", At: 2 * second})
	accused(t, "slow because it was harmed", "", judgeValues(harmed.events).problems)
	stalled := new(script).took("a", put("1", "v", any), ok(5, 5), 4*second)
	stalled.events = append(stalled.events, Event{Kind: kindStall, Process: "a", At: 3 * second, Stalled: second})
	accused(t, "slow because of the machine", "", judgeValues(stalled.events).problems)
	stalled.events[len(stalled.events)-1].Process = "b"
	accused(t, "slow beside one that stalled", "waited for 4s", judgeValues(stalled.events).problems)
}
