package disk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ferrymq/ferry/driver"
)

// fate is what may be true of a message after a crash.
type fate struct {
	sent, acked bool
	gone        map[string]bool // groups that may have settled it
	surely      map[string]bool // and were told so
	held        map[string]int  // groups that held it, with its count
	begun       map[string]int  // groups whose handler began: 1 if perhaps, 2 for sure
	loose       map[string]bool // groups where its place changed
}

// fates replays what callers knew.
func (w *world) fates(n int) map[string]*fate {
	fs := map[string]*fate{}
	get := func(id string) *fate {
		if fs[id] == nil {
			fs[id] = &fate{gone: map[string]bool{}, surely: map[string]bool{}, held: map[string]int{}, begun: map[string]int{},
				loose: map[string]bool{}}
		}
		return fs[id]
	}
	for _, e := range w.events[:n] {
		switch e.kind {
		case publishing:
			get(e.id).sent = true
		case published:
			get(e.id).acked = true
		case received:
			get(e.place.id).held[e.place.group] = e.count
			get(e.place.id).acked = true // a consumer acts on it: it must not be undone
			if get(e.place.id).begun[e.place.group] = 0; e.begun {
				get(e.place.id).begun[e.place.group] = 2
			}
		case beginning:
			f := get(e.place.id)
			f.begun[e.place.group] = max(1, f.begun[e.place.group])
		case ending:
			get(e.place.id).gone[e.place.group] = true
			delete(get(e.place.id).held, e.place.group)
		case ended:
			get(e.place.id).surely[e.place.group] = true
		case returning, returned:
			delete(get(e.place.id).held, e.place.group)
		case moved:
			get(e.place.id).loose[e.place.group] = true
		}
	}
	return fs
}

// judge opens what a crash left, and compares it with what callers knew.
func (w *world) judge(c *crash) {
	w.t.Helper()
	o := w.o
	o.fs = c.fs.CrashClone(vfs.CrashCloneCfg{}) // the crash itself stays as it was
	d, err := New(context.Background(), o)
	if err != nil {
		w.t.Errorf("after a crash before %s with %d%%: %v", c.where, c.percent, err)
		return
	}
	j := &judge{world: w, c: c, d: d, fates: w.fates(c.events)}
	j.listing()
	for id, f := range j.fates {
		j.message(id, f)
	}
	j.emits()
	j.fleets()
	j.memory()
	j.values()
	j.drain()
	j.listing()
	w.ok(d.Close(ctx), "Close")
}

type judge struct {
	*world
	c     *crash
	d     *Driver
	fates map[string]*fate
	found map[string][]driver.Entry
}

func (j *judge) wrong(format string, a ...any) {
	j.t.Helper()
	j.t.Errorf("after a crash before %s with %d%% of the unsynced, knowing %d events: %s", j.c.where, j.c.percent,
		j.c.events, fmt.Sprintf(format, a...))
}

// safe reports whether what was acknowledged must be there: an interval promises that only after kill -9.
func (j *judge) safe() bool { return j.world.safe(j.c) }

func (w *world) safe(c *crash) bool { return w.o.Sync.always() || c.percent == 100 }

// listing demands a clean audit, nothing in flight, and nothing that was never published.
func (j *judge) listing() {
	j.t.Helper()
	topics, err := j.d.Topics(ctx)
	j.ok(err, "Topics")
	for _, info := range topics {
		report, err := j.d.Audit(ctx, info.Topic, false)
		j.ok(err, "Audit")
		for _, p := range report.Problems {
			j.wrong("audit: %+v", p)
		}
		for _, text := range report.Stats.Unbalanced() {
			j.wrong("%s", text)
		}
		for _, g := range report.Stats.Groups {
			if g.Inflight != 0 {
				j.wrong("%d are in flight", g.Inflight)
			}
			for _, state := range []driver.State{driver.StateReady, driver.StateWaiting, driver.StateDead} {
				j.browse(info.Topic, g.Group, state)
			}
		}
		j.browse(info.Topic, "", driver.StateDelayed)
	}
}

func (j *judge) browse(topic, group string, state driver.State) {
	page, err := j.d.Browse(ctx, driver.Query{Topic: topic, Group: group, State: state, Limit: 1000})
	j.ok(err, "Browse")
	for _, e := range page.Entries {
		if f := j.fates[e.ID]; f == nil || !f.sent {
			j.wrong("%q was not published by then, and is %s", e.ID, state)
			continue
		}
		j.check(e.Message)
	}
}

// message demands that what was acknowledged is there for every group that did not settle it.
func (j *judge) message(id string, f *fate) {
	if j.found == nil {
		j.found = map[string][]driver.Entry{}
	}
	s := j.sent[id]
	if s == nil {
		return
	}
	entries, err := j.d.Get(ctx, driver.Target{Topic: s.Topic, ID: id})
	if err != nil && !errors.Is(err, driver.ErrNotFound) {
		j.wrong("Get of %q: %v", id, err)
	}
	j.found[id] = entries
	for _, g := range crashGroups {
		i := slices.IndexFunc(entries, func(e driver.Entry) bool { return e.Group == g || e.Group == "" })
		switch {
		case i < 0 && f.acked && !f.gone[g] && j.safe():
			j.wrong("%q was acknowledged, and is lost for %s; %+v (%v)\n%s", id, g, entries, err, j.story(id))
		case i >= 0 && f.surely[g] && j.c.percent == 100:
			j.wrong("%q was settled for %s, and is there: %+v", id, g, entries[i])
		case i >= 0 && f.held[g] > 0 && j.c.percent == 100 && !f.counted(g, entries[i].Deliveries):
			j.wrong("%q was in flight for %s, counted %d, begun %d, and is now counted %d", id, g, f.held[g], f.begun[g],
				entries[i].Deliveries)
		}
	}
}

// counted reports whether a message that was held may have this count: the first loss counts, and those that had begun.
func (f *fate) counted(group string, deliveries int) bool {
	uncounted := f.held[group] > 1 && f.begun[group] < 2 && deliveries == f.held[group]
	counted := (f.held[group] == 1 || f.begun[group] > 0) && deliveries == f.held[group]+1
	return uncounted || counted
}

// story tells what callers did with a message, before the crash and after.
func (j *judge) story(id string) string {
	var b strings.Builder
	for i, e := range j.events {
		if e.id == id || e.place.id == id {
			fmt.Fprintf(&b, "%d: %+v\n", i, e)
		}
	}
	return b.String()
}

// emits demands that a settlement and its follow-up happened both or not at all.
func (j *judge) emits() {
	for _, e := range j.events[:j.c.events] {
		if e.kind != ending || e.emits == "" {
			continue
		}
		f := j.fates[e.emits]
		parent, child := j.has(e.place.id, e.place.group), len(j.found[e.emits]) > 0
		switch {
		case !parent && !child && len(f.gone) == 0 && (j.fates[e.place.id].acked || j.fates[e.emits].acked) && j.safe():
			j.wrong("%q was settled, but its follow-up %q is missing", e.place.id, e.emits)
		case parent && child:
			j.wrong("%q was not settled, but its follow-up %q is there", e.place.id, e.emits)
		}
	}
}

func (j *judge) has(id, group string) bool {
	return slices.ContainsFunc(j.found[id], func(e driver.Entry) bool { return e.Group == group || e.Group == "" })
}

// fleets demands that an atomic publish happened as a whole.
func (j *judge) fleets() {
	there, missing := map[int]string{}, map[int]string{}
	for id, f := range j.fates {
		s := j.sent[id]
		if s == nil || s.fleet == 0 {
			continue
		}
		switch {
		case len(j.found[id]) > 0:
			there[s.fleet] = id
		case len(f.gone) == 0:
			missing[s.fleet] = id
		}
	}
	for fleet, id := range missing {
		if other, ok := there[fleet]; ok {
			j.wrong("%q is there, but %q of the same publish is not", other, id)
		}
	}
}

// drain consumes everything, and demands the order of every key.
func (j *judge) drain() {
	if err := j.d.Pause(ctx, crashTopics[1], crashGroups[1], false); err != nil && !errors.Is(err, driver.ErrNotFound) {
		j.ok(err, "Pause")
	}
	time.Sleep(10 * time.Second) // everything is due
	for _, topic := range crashTopics {
		for _, group := range crashGroups {
			j.drainGroup(topic, group)
		}
	}
}

func (j *judge) drainGroup(topic, group string) {
	stats, err := j.d.Stats(ctx, topic)
	if errors.Is(err, driver.ErrNotFound) {
		return // the crash was before it was made
	}
	j.ok(err, "Stats")
	i := slices.IndexFunc(stats.Groups, func(g driver.GroupStats) bool { return g.Group == group })
	if i < 0 {
		return
	}
	s, err := j.d.Subscribe(ctx, driver.SubscribeOptions{Topic: topic, Group: group, Instance: "judge", MaxRun: 3})
	j.ok(err, "Subscribe")
	last := map[string]int{}
	for left := int(stats.Groups[i].Ready); left > 0; {
		ds, err := s.Receive(ctx, 5)
		j.ok(err, "Receive")
		left -= len(ds)
		var ss []driver.Settlement
		for _, d := range ds {
			j.check(d.Message)
			j.ordered(d, group, last)
			ss = append(ss, driver.Settlement{Delivery: d})
		}
		for _, err := range s.Settle(ctx, ss) {
			j.ok(err, "Settle")
		}
	}
	j.ok(s.Close(ctx), "Close")
}

// ordered compares with the newest of the same key. What was delayed or replayed joined the tail.
func (j *judge) ordered(d *driver.Delivery, group string, last map[string]int) {
	s := j.sent[d.ID]
	if d.Key == "" || s.Delay > 0 || j.fates[d.ID].loose[group] || d.Cause == driver.CauseReplay {
		return
	}
	if s.number < last[d.Key] {
		j.wrong("%q of key %s came after number %d", d.ID, d.Key, last[d.Key])
	}
	last[d.Key] = s.number
}
