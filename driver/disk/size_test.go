package disk

import (
	"bufio"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// backlogDir tells a test binary that it is the child of TestLargeBacklog, and where the store is.
const backlogDir = "FERRY_TEST_BACKLOG_DIR"

// mostResident is what a process may take, whatever the backlog.
const mostResident = 1 << 30

// TestLargeBacklog has a process fill a store and kills it, opens what it left, opens that again after a clean end, and
// drains it. By itself it is small; FERRY_DISK_BACKLOG is how many messages of 1 KB it takes, for the figures in
// docs/disk.md.
func TestLargeBacklog(t *testing.T) {
	n := 60_000
	if s := os.Getenv("FERRY_DISK_BACKLOG"); s != "" {
		n, _ = strconv.Atoi(s)
	} else if testing.Short() {
		t.Skip("writes 60 MB")
	}
	if dir := os.Getenv(backlogDir); dir != "" {
		fillAndWait(t, dir, n)
		return
	}
	o := Options{Dir: t.TempDir(), Sync: Interval(time.Second)}
	fillAndKill(t, o.Dir)
	t.Logf("%d messages: %d bytes on disk each", n, usage(t, o.Dir)/int64(n))
	if err := timedOpen(t, o, n, "after a kill").Close(ctx); err != nil {
		t.Fatal(err)
	}
	d := timedOpen(t, o, n, "after a clean end")
	start, worked := time.Now(), cpuTime(t)
	if got := takeAll(t, d, "jobs"); got != n {
		t.Errorf("%d messages came back, want %d", got, n)
	}
	t.Logf("drained at %.0f messages a second, %v of CPU each", float64(n)/time.Since(start).Seconds(),
		(cpuTime(t)-worked)/time.Duration(n))
	fits(t, "all this")
	gaveBack(t, d, o.Dir)
	if err := d.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

// fillAndKill fills a store in a process of its own, which is killed then.
func fillAndKill(t *testing.T, dir string) {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^TestLargeBacklog$", "-test.v", "-test.timeout=0")
	c.Env = append(os.Environ(), backlogDir+"="+dir)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	filled := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "filled: "); ok {
			t.Log("filling took ", text)
			filled = true
			if err := c.Process.Kill(); err != nil {
				t.Error(err)
			}
		} else {
			t.Log(lines.Text())
		}
	}
	if err := c.Wait(); !filled {
		t.Fatalf("the child ended: %v", err)
	}
}

// fillAndWait is the child.
func fillAndWait(t *testing.T, dir string, n int) {
	start, worked := time.Now(), cpuTime(t)
	d := open(t, Options{Dir: dir, Sync: Interval(time.Second)})
	fill(t, d, n)
	fits(t, "filling")
	fmt.Printf("filled: %v, %v of CPU; at most %d MiB resident\n", time.Since(start), cpuTime(t)-worked, peak()>>20)
	select {}
}

// fits demands that a process has stayed small.
func fits(t *testing.T, what string) {
	t.Helper()
	if n := peak(); n > mostResident {
		t.Errorf("%s took %d MiB of memory", what, n>>20)
	}
}

// peak is the most memory that the process has had, where that can be told.
func peak() (bytes int64) {
	text, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			_, _ = fmt.Sscan(rest, &bytes)
		}
	}
	return bytes << 10
}

// timedOpen tells how long opening takes. 5 s for a million after a kill are promised, on a machine of its own.
func timedOpen(t *testing.T, o Options, n int, when string) *Driver {
	t.Helper()
	before, start, worked := heap(), time.Now(), cpuTime(t)
	d := open(t, o)
	took, work := time.Since(start), cpuTime(t)-worked
	kept := heap() - before
	t.Logf("opened %s in %v with %v of CPU, %.2f s for a million; %d KiB of memory, at most %d MiB resident", when, took,
		work, took.Seconds()/float64(n)*1e6, kept>>10, peak()>>20)
	if perMillion := work.Seconds() / float64(n) * 1e6; n >= 500_000 && perMillion > 15 {
		t.Errorf("opening takes %.1f s of CPU for a million messages", perMillion)
	}
	return d
}

// gaveBack demands that a drained topic gives its disk back, without anybody asking for it.
func gaveBack(t *testing.T, d *Driver, dir string) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; {
		m := d.store.db.Metrics()
		if live := m.DiskSpaceUsage() - m.WAL.PhysicalSize; live < 16<<20 {
			t.Logf("%d KiB of tables are left, %d KiB in all", live>>10, usage(t, dir)>>10)
			return
		} else if time.Now().After(end) {
			t.Errorf("%d MiB of tables are left after everything was consumed:\n%v", live>>20, m)
			return
		}
		time.Sleep(50 * time.Millisecond) // Pebble compacts when it likes
	}
}

func fill(t testing.TB, d *Driver, n int) {
	t.Helper()
	const batch = 500
	random := rand.NewChaCha8([32]byte{1}) // cannot be compressed
	for i := 0; i < n; i += batch {
		ms := make([]*driver.Message, min(batch, n-i))
		for j := range ms {
			body := make([]byte, 1024)
			_, _ = random.Read(body)
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
