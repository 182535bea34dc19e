package guards_test

import (
	"fmt"
	"slices"
	"testing"
)

// verdict reads a tape and says which promises of the guards were broken. It accuses nobody whose innocence is
// possible: a message was admitted at some time between the question and the answer, a slot is lost when its lease may
// have ended.
type verdict struct {
	problems []string
	running  map[string]event // handlers, by process and id
	admitted map[string][]event
	marked   map[string]bool
	done     map[string]bool // key:seq
	overlaps int             // most handlers at once
}

func judge(tape []event) *verdict {
	v := &verdict{running: map[string]event{}, admitted: map[string][]event{}, marked: map[string]bool{},
		done: map[string]bool{}}
	back := map[string]bool{}
	for _, e := range tape {
		if e.Kind == returned {
			back[fmt.Sprint(e.Key, e.Ticket)] = true
		}
	}
	for _, e := range tape {
		switch e.Kind {
		case admitted:
			if !back[fmt.Sprint(e.Key, e.Ticket)] {
				v.admitted[e.Key] = append(v.admitted[e.Key], e)
			}
		case started:
			v.start(e)
		case done, failed:
			delete(v.running, fmt.Sprint(e.Process, e.ID))
			if e.Kind == done {
				v.done[fmt.Sprint(e.Key, e.Seq)] = true
			}
		case marked:
			v.marked[e.ID] = true
		case killed:
			for name, r := range v.running {
				if r.Process == e.Process {
					delete(v.running, name)
				}
			}
		}
	}
	v.limits()
	return v
}

func (v *verdict) accuse(format string, args ...any) {
	if len(v.problems) < 20 {
		v.problems = append(v.problems, fmt.Sprintf(format, args...))
	}
}

// limits counts, for each admission, those that were certainly in one window with it: asked for after the window began,
// and answered no later.
func (v *verdict) limits() {
	for key, all := range v.admitted {
		slices.SortFunc(all, func(a, b event) int { return a.At.Compare(b.At) })
		for i, last := range all {
			n := 0
			for j := i; j >= 0 && last.At.Sub(all[j].At) < window; j-- {
				if last.At.Sub(all[j].From) < window {
					n++
				}
			}
			if n > limit {
				v.accuse("key %s: %d messages were admitted within %v, the limit is %d", key, n, window, limit)
			}
		}
	}
}

// start looks at what runs beside e, and what must have ended before it.
func (v *verdict) start(e event) {
	atOnce := 1
	for _, r := range v.running {
		if e.At.Before(r.Slot) {
			atOnce++
		}
		if r.ID == e.ID && e.At.Before(r.Mark) {
			v.accuse("message %s is handled by processes %d and %d at once", e.ID, r.Process, e.Process)
		}
	}
	if v.overlaps = max(v.overlaps, atOnce); atOnce > slots {
		v.accuse("%d handlers at once at %v, there are %d slots", atOnce, e.At, slots)
	}
	if v.marked[e.ID] {
		v.accuse("message %s is handled again after its work was marked as done", e.ID)
	}
	if e.Seq > 0 && !v.done[fmt.Sprint(e.Key, e.Seq-1)] {
		v.accuse("message %d of key %s started before %d was done", e.Seq, e.Key, e.Seq-1)
	}
	v.running[fmt.Sprint(e.Process, e.ID)] = e
}

func (v *verdict) check(t *testing.T, keys, each int) {
	t.Helper()
	for _, p := range v.problems {
		t.Error(p)
	}
	for k := range keys {
		for i := range each {
			if !v.done[fmt.Sprint(fmt.Sprint("k", k), i)] {
				t.Errorf("message %d of key k%d was never handled", i, k)
			}
		}
	}
}
