package disk

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
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
		points = 300
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
	w := &world{t: t, rng: rng, sent: map[string]*sent{}, o: Options{Dir: "/store",
		CacheBytes: int64(1 + rng.IntN(2)*1000)}}
	if rng.IntN(2) == 0 {
		w.o.snapshotFrom = 1
	}
	if rng.IntN(2) == 0 {
		w.o.Window = 1 + rng.IntN(24)
	}
	if rng.IntN(2) == 0 {
		w.o.sweepEvery, w.o.layers = 1+rng.IntN(20), 2
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
	w.given = 0
	if w.safe(c) {
		w.given = w.newestRevision(c.events)
	}
	events = append(events, w.foundValues(d)...)
	w.events = events
	w.ok(d.Close(ctx), "Close")
}
