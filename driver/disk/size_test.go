package disk

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// TestLargeBacklog fills a store, opens what a killed process would have left, restarts it and drains it. By itself it is small; FERRY_DISK_BACKLOG is how many
// messages of 1 KB it takes, a million for the figures in docs/disk.md.
func TestLargeBacklog(t *testing.T) {
	n := 60_000
	if s := os.Getenv("FERRY_DISK_BACKLOG"); s != "" {
		n, _ = strconv.Atoi(s)
	} else if testing.Short() {
		t.Skip("writes 60 MB")
	}
	o := Options{Dir: t.TempDir(), Sync: Interval(time.Second), CacheBytes: 16 << 20}
	d := open(t, o)
	before := heap()
	fill(t, d, n)
	t.Logf("%d messages: %d bytes of memory each, %d bytes on disk each", n, (heap()-before-o.CacheBytes)/int64(n), usage(t, o.Dir)/int64(n))
	killed := o
	killed.Dir = filepath.Join(t.TempDir(), "killed")
	if err := d.Backup(ctx, killed.Dir); err != nil { // with its log, and no snapshot of the index
		t.Fatal(err)
	}
	if err := d.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if err := timedOpen(t, killed, n, "after a kill").Close(ctx); err != nil {
		t.Fatal(err)
	}
	d = timedOpen(t, o, n, "after a clean end")
	start := time.Now()
	if got := takeAll(t, d, "jobs"); got != n {
		t.Errorf("%d messages came back, want %d", got, n)
	}
	t.Logf("drained at %.0f messages a second", float64(n)/time.Since(start).Seconds())
	gaveBack(t, d, o.Dir)
	if err := d.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

// timedOpen tells how long opening takes. 5 s for a million after a kill are promised, on a machine of its own.
func timedOpen(t *testing.T, o Options, n int, when string) *Driver {
	t.Helper()
	before, start, worked := heap(), time.Now(), cpuTime(t)
	d := open(t, o)
	took, work := time.Since(start), cpuTime(t)-worked
	each := (heap() - before) / int64(n)
	debug.FreeOSMemory()
	t.Logf("opened %s in %v with %v of CPU, %.2f s for a million; %d bytes of memory each, %d MiB resident", when, took, work, took.Seconds()/float64(n)*1e6, each, resident()>>20)
	if perMillion := work.Seconds() / float64(n) * 1e6; n >= 500_000 && perMillion > 15 {
		t.Errorf("opening takes %.1f s of CPU for a million messages", perMillion)
	}
	return d
}

// resident is the memory that the process has, where that can be told.
func resident() int64 {
	var size, pages int64
	text, _ := os.ReadFile("/proc/self/statm")
	_, _ = fmt.Sscan(string(text), &size, &pages)
	return pages * int64(os.Getpagesize())
}

// gaveBack demands that a drained topic gives its disk back, without anybody asking for it.
func gaveBack(t *testing.T, d *Driver, dir string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; {
		m := d.store.db.Metrics()
		if live := m.DiskSpaceUsage() - m.WAL.PhysicalSize; live < 16<<20 {
			t.Logf("%d KiB of tables are left, %d KiB in all", live>>10, usage(t, dir)>>10)
			return
		} else if time.Now().After(end) {
			t.Errorf("%d MiB of tables are left after everything was consumed", live>>20)
			return
		}
		time.Sleep(50 * time.Millisecond) // Pebble compacts when it likes
	}
}

func fill(t testing.TB, d *Driver, n int) {
	t.Helper()
	const batch = 500
	body := make([]byte, 1024)
	for i := range body {
		body[i] = byte(i * 7919 >> 3)
	}
	for i := 0; i < n; i += batch {
		ms := make([]*driver.Message, min(batch, n-i))
		for j := range ms {
			ms[j] = &driver.Message{ID: fmt.Sprintf("0198c0de-0000-7000-8000-%012d", i+j), Topic: "jobs", Body: body}
		}
		if _, err := d.Publish(ctx, ms, driver.PublishOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func usage(t *testing.T, dir string) (total int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // Pebble removes files meanwhile
		}
		if info, err := e.Info(); err == nil {
			total += info.Size()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return total
}
