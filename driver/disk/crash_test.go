package disk

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/ferrymq/ferry/driver"
)

// crash is the file system as a crash would have left it, and how much the callers knew then.
type crash struct {
	fs      *vfs.MemFS
	events  int
	percent int // of what was not synced, that survived; 100 is a killed process
	where   string
}

// TestCrashes runs random workloads on a file system that loses what was not synced, crashes them just before writes,
// syncs, renames and other changes of files, and opens what is left. FERRY_CRASH_POINTS says how many crashes.
func TestCrashes(t *testing.T) {
	t.Parallel()
	points := 2000
	if slowdown > 1 {
		points = 600
	}
	if s := os.Getenv("FERRY_CRASH_POINTS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatalf("FERRY_CRASH_POINTS=%q is not a number", s)
		}
		points = n
	} else if testing.Short() {
		points = 200
	}
	seed := rand.Uint64()
	if s := os.Getenv("FERRY_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	var done, rounds int
	for round := uint64(0); done < points && !t.Failed(); round++ {
		synctest.Test(t, func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Logf("FERRY_SEED=%d", seed+round)
				}
			}()
			done += crashRound(t, rand.New(rand.NewPCG(seed+round, 1)))
		})
		rounds++
	}
	t.Logf("%d crashes in %d workloads, FERRY_SEED=%d", done, rounds, seed)
}

// crashRound runs one workload over several crashes, and judges all crashes on the way.
func crashRound(t *testing.T, rng *rand.Rand) int {
	total := 0
	w := &world{t: t, rng: rng, sent: map[string]*sent{}, o: Options{Dir: "/store", CacheBytes: int64(1 + rng.IntN(2)*1000)}}
	if rng.IntN(2) == 0 {
		w.o.snapshotFrom = 1
	}
	if rng.IntN(2) == 0 {
		w.o.Window = 1 + rng.IntN(24)
	}
	if rng.IntN(2) == 0 {
		w.o.sweepEvery = 1 + rng.IntN(20)
	}
	if rng.IntN(4) == 0 {
		w.o.Sync = Interval(time.Second)
	}
	mem := vfs.NewCrashableMem()
	for range 3 {
		crashes := w.live(mem, 40)
		for i := range crashes {
			total++
			w.judge(&crashes[i])
		}
		if len(crashes) == 0 || t.Failed() {
			break
		}
		last := &crashes[rng.IntN(len(crashes))]
		w.resume(last)
		mem = last.fs.CrashClone(vfs.CrashCloneCfg{})
	}
	return total
}

// live uses the store for some steps, and returns the crashes it could have had.
func (w *world) live(mem *vfs.MemFS, steps int) []crash {
	var mu sync.Mutex
	var crashes []crash
	hook := rand.New(rand.NewPCG(w.rng.Uint64(), 2))
	one := 6 + w.rng.IntN(10)
	w.o.fs = newFaultFS(mem, func(op errorfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if op.Kind.ReadOrWrite() != errorfs.OpIsWrite || len(crashes) >= 30 || hook.IntN(one) > 0 {
			return nil
		}
		percent := []int{0, 10, 50, 100}[hook.IntN(4)]
		n := w.seen() // before the files: what was acknowledged by now must be in them
		clone := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: hook})
		crashes = append(crashes, crash{fs: clone, events: n, percent: percent, where: fmt.Sprint(op.Kind, " ", op.Path)})
		return nil
	})
	w.start()
	for range steps {
		w.step()
	}
	w.stop()
	mu.Lock()
	defer mu.Unlock()
	return crashes
}

// fate is what may be true of a message after a crash.
type fate struct {
	sent, acked bool
	gone        map[string]bool // groups that may have settled it
	surely      map[string]bool // and were told so
	held        map[string]int  // groups that held it, with its count
	loose       map[string]bool // groups where its place changed
}

// fates replays what callers knew.
func (w *world) fates(n int) map[string]*fate {
	fs := map[string]*fate{}
	get := func(id string) *fate {
		if fs[id] == nil {
			fs[id] = &fate{gone: map[string]bool{}, surely: map[string]bool{}, held: map[string]int{}, loose: map[string]bool{}}
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
	d, err := New(o)
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
	j.t.Errorf("after a crash before %s with %d%% of the unsynced, knowing %d events: %s", j.c.where, j.c.percent, j.c.events, fmt.Sprintf(format, a...))
}

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
	safe := j.o.Sync.always() || j.c.percent == 100 // an interval promises nothing else
	for _, g := range crashGroups {
		i := slices.IndexFunc(entries, func(e driver.Entry) bool { return e.Group == g || e.Group == "" })
		switch {
		case i < 0 && f.acked && !f.gone[g] && safe:
			j.wrong("%q was acknowledged, and is lost for %s; %+v (%v)\n%s", id, g, entries, err, j.story(id))
		case i >= 0 && f.surely[g] && j.c.percent == 100:
			j.wrong("%q was settled for %s, and is there: %+v", id, g, entries[i])
		case i >= 0 && f.held[g] > 0 && j.c.percent == 100 && entries[i].Deliveries != f.held[g]+1:
			j.wrong("%q was in flight for %s, counted %d, and is now counted %d", id, g, f.held[g], entries[i].Deliveries)
		}
	}
}

// story tells what callers knew of a message, and what is stored of its topic.
func (j *judge) story(id string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%+v %+v\n", j.o, *j.sent[id])
	for i, e := range j.events {
		if e.id == id || e.place.id == id {
			fmt.Fprintf(&b, "%d: %+v\n", i, e)
		}
	}
	stats, err := j.d.Stats(ctx, j.sent[id].Topic)
	fmt.Fprintf(&b, "%+v %v\n", stats, err)
	_ = j.d.store.Scan([]byte{0}, []byte{0xff}, func(key, value []byte) error {
		fmt.Fprintf(&b, "%x: %.60x %t\n", key, value, bytes.Contains(value, []byte(id)))
		return nil
	})
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
		case !parent && !child && len(f.gone) == 0 && (j.fates[e.place.id].acked || j.fates[e.emits].acked) && (j.o.Sync.always() || j.c.percent == 100):
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

// resume makes the world what a crash left of it.
func (w *world) resume(c *crash) {
	o := w.o
	o.fs = c.fs.CrashClone(vfs.CrashCloneCfg{})
	d := open(w.t, o)
	var events []event
	fates := w.fates(c.events)
	for id := range fates {
		s := w.sent[id]
		if s == nil {
			continue
		}
		entries, _ := d.Get(ctx, driver.Target{Topic: s.Topic, ID: id})
		if len(entries) == 0 {
			delete(w.sent, id)
			continue
		}
		events = append(events, event{kind: publishing, id: id}, event{kind: published, id: id})
		for _, g := range crashGroups {
			at := place{s.Topic, id, g}
			if !slices.ContainsFunc(entries, func(e driver.Entry) bool { return e.Group == g || e.Group == "" }) {
				events = append(events, event{kind: ending, place: at})
			}
			if fates[id].loose[g] {
				events = append(events, event{kind: moved, place: at})
			}
		}
	}
	for id := range w.sent {
		if fates[id] == nil {
			delete(w.sent, id)
		}
	}
	w.events = events
	w.ok(d.Close(ctx), "Close")
}
