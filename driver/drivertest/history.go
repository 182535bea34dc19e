package drivertest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry/driver"
	"pgregory.net/rapid"
)

// histories runs random operations against the driver and the model, Steps of them in all. A failing history is
// shrunk by rapid, which prints its seed; -rapid.seed repeats it.
func (h Harness) histories(t *testing.T) {
	parts := 100 // as many as rapid makes checks
	if !h.Virtual {
		parts = 5 // opening is slow there
	}
	steps, done, failed := max(h.Steps/parts, 10), 0, false
	rapid.Check(t, func(rt *rapid.T) {
		if done >= h.Steps && !failed {
			return
		}
		s := scripts(steps).Draw(rt, "script")
		var complaints []string
		h.inTime(t, func(tb testing.TB) {
			complaints = record(tb, func(r testing.TB) { h.run(r, Case{Name: "history", Run: s.run}) })
		})
		done += steps
		if len(complaints) > 0 {
			if !failed {
				t.Logf("before it is shrunk:\n%s", strings.Join(complaints, "\n")) // on a real server it may not fail again
			}
			failed = true
			rt.Log(strings.Join(complaints, "\n"))
			// always the same text: it tells rapid that it is the same failure
			rt.Fatal("the driver broke the contract, as told above")
		}
	})
	t.Logf("%d steps", done)
}

// script is a history before it is run: one number for each step, 0 for none, so that rapid can shrink it.
type script []uint64

func scripts(steps int) *rapid.Generator[script] {
	return rapid.Map(rapid.SliceOfN(rapid.Uint64(), steps, steps), func(s []uint64) script { return s })
}

// GoString keeps rapid from printing every number: the trace says more.
func (s script) GoString() string { return fmt.Sprintf("a script of %d steps", len(s)) }

// dice draws small numbers from one step of a script.
type dice uint64

func (d *dice) n(sides int) int {
	*d += 0x9e3779b97f4a7c15 // splitmix64
	x := uint64(*d)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return int((x ^ x>>31) % uint64(sides))
}

// history is one run of a script.
type history struct {
	t     *T
	m     *model
	subs  []*consumer
	trace []string
	names int

	keys     int  // how many there are: few make long queues of one key
	restless bool // members come and go all the time
}

// consumer is a subscription in a history.
type consumer struct {
	*sub
	member *member
	held   []*driver.Delivery
	stale  []*driver.Delivery // no longer held: settling them must be refused
}

func (s script) run(t *T) {
	h := &history{t: t, m: &model{now: time.Now()}}
	first := dice(s[0])
	h.open(&first)
	for i, x := range s[1:] {
		if x == 0 {
			continue
		}
		d := dice(x + uint64(i)<<32)
		h.step(&d)
	}
	h.drain()
	h.t.sound(topic)
}

// open creates the topic with one or two groups and their members.
func (h *history) open(d *dice) {
	h.keys, h.restless = 1<<d.n(3), d.n(3) == 0
	h.t.oneLane(topic)
	for range 1 + d.n(2) {
		h.newGroup(d)
	}
	h.compare()
}

// step runs one operation and compares what can be seen.
func (h *history) step(d *dice) {
	h.tick(0)
	if h.restless && d.n(8) == 0 {
		h.join(d)
	} else {
		operations[d.n(len(operations))](h, d)
	}
	h.compare()
}

// tick lets time pass. In virtual time steps happen at different fractions of a millisecond, and durations are whole
// ones, so that events of different steps hardly ever coincide: the contract does not order those that do.
func (h *history) tick(d time.Duration) {
	if h.t.Virtual {
		time.Sleep(d + 1)
		synctest.Wait()
	}
	h.m.advance(h.clock())
	for _, c := range h.subs {
		c.forget()
	}
}

// clock is the time of the model. Without virtual time it stands still, and nothing in the history depends on it.
func (h *history) clock() time.Time {
	if h.t.Virtual {
		return time.Now()
	}
	return h.m.now
}

// forget moves what the model says is lost to the stale deliveries.
func (c *consumer) forget() {
	c.held = slices.DeleteFunc(c.held, func(d *driver.Delivery) bool {
		e := c.member.g.find(d.ID)
		if e != nil && e.state == driver.StateInflight && e.token == d.Token.String() {
			return false
		}
		c.stale = append(c.stale, d)
		return true
	})
	c.stale = c.stale[max(0, len(c.stale)-10):]
}

// note adds a line to the trace.
func (h *history) note(text string, a ...any) {
	h.trace = append(h.trace, fmt.Sprintf("%v  ", h.m.now.Format("05.000000000"))+fmt.Sprintf(text, a...))
}

// fail ends the history with the end of its trace and, last, what is wrong: of a long log people keep the end.
func (h *history) fail(text string, a ...any) {
	h.t.Helper()
	end := strings.Join(h.trace[max(0, len(h.trace)-60):], "\n  ")
	h.t.Fatalf("after:\n  %s\n%s", end, fmt.Sprintf(text, a...))
}

// compare demands that Stats says what the model says.
func (h *history) compare() {
	h.t.Helper()
	if h.t.Caps.Counts != driver.CountsExact {
		return
	}
	got, err := h.t.Stats(h.t.Context(), topic)
	if err != nil {
		h.fail("Stats: %v", err)
	}
	for _, c := range unbalanced(got) {
		h.fail("%s", c)
	}
	consumers := map[string]int{}
	for _, c := range h.subs {
		consumers[c.member.g.name]++
	}
	want := h.m.stats(consumers)
	got.Bytes, got.Invalid = 0, 0
	for i := range got.Groups {
		got.Groups[i].Oldest = 0
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		h.fail("Stats differ:\n got %+v\nwant %+v", got, want)
	}
}
