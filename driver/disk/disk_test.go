package disk

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/drivertest"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // what fails here is meant to
	code := m.Run()
	if code == 0 {
		if err := leaks(goleak.Find()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// leaks excuses what a Pebble leaves behind that failed and does not close, or not whole: its store gives it up, and
// nothing can end it. One that nobody has closed is no excuse: more than its granter is left of it.
func leaks(found error) error {
	if found == nil {
		return nil
	}
	const pebble = "github.com/cockroachdb/pebble/v2"
	granter := goleak.IgnoreAnyFunction(pebble + ".(*ConcurrencyLimitScheduler).periodicGranter")
	if text := found.Error(); !strings.Contains(text, "disk.(*store).shut") &&
		!strings.Contains(text, "disk.(*store).closeUnreadable") {
		return goleak.Find(granter)
	}
	return goleak.Find(granter, goleak.IgnoreAnyFunction(pebble+".(*DB).Close"),
		goleak.IgnoreAnyFunction(pebble+".(*cleanupManager).mainLoop"),
		goleak.IgnoreAnyFunction(pebble+"/record.(*LogWriter).flushLoop"),
		goleak.IgnoreAnyFunction(pebble+"/internal/genericcache.(*shard[...]).releaseLoop"))
}

func want(level driver.Durability) driver.Capabilities {
	return driver.Capabilities{
		Driver: "disk", LeaseScope: driver.LeasePerMessage, MinLease: time.Second, DefaultLease: 10 * time.Second,
		KeyedPriority: driver.PriorityEverywhere, Parallel: driver.ParallelUnbounded, Dedup: driver.DedupExact,
		IDWindow: time.Minute,
		Bound:    driver.BoundPerTopic, AtomicPublish: driver.AtomicEverywhere, AtomicEmit: driver.AtomicEverywhere,
		Counts:  driver.CountsExact,
		GetByID: driver.LookupIndexed, PhysicalDelete: true, History: driver.HistoryKept, Endings: true, Durability: level,
		Levels: []driver.Durability{driver.Written, driver.Synced}, MaxBody: 4 << 20,
	}
}

// harness judges drivers that are opened like this. With tiny caches everything is read from the store.
func harness(level driver.Durability, options func(t testing.TB) Options) drivertest.Harness {
	return drivertest.Harness{
		Open: func(t testing.TB) driver.Driver { return open(t, options(t)) },
		Want: want(level),
		PlantRaw: func(ctx context.Context, d driver.Driver, topic string, raw []byte) error {
			return d.(*Driver).StoreRaw(ctx, topic, raw)
		},
		Reopen: func(t testing.TB, d driver.Driver) driver.Driver {
			t.Helper()
			if err := d.Close(context.Background()); err != nil {
				t.Fatalf("Close: %v", err)
			}
			return open(t, d.(*Driver).o)
		},
	}
}

func open(t testing.TB, o Options) *Driver {
	t.Helper()
	d, err := New(context.Background(), o)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return d
}

// TestDriver runs the whole suite in virtual time, on a file system in memory.
func TestDriver(t *testing.T) {
	h := harness(driver.Synced, func(testing.TB) Options {
		return Options{Dir: "/store", CacheBytes: 1, fs: vfs.NewMem(), snapshotFrom: 1}
	})
	h.Virtual, h.Steps = true, 20_000/slowdown
	drivertest.Run(t, h)
}

// TestDriverWithATinyWindow is the same with nearly everything cold.
func TestDriverWithATinyWindow(t *testing.T) {
	h := harness(driver.Synced, func(testing.TB) Options {
		return Options{Dir: "/store", CacheBytes: 1, Window: 16, fs: vfs.NewMem(), snapshotFrom: 1}
	})
	h.Virtual, h.Steps = true, 10_000/slowdown
	drivertest.Run(t, h)
}

// TestDriverOnDisk runs the whole suite on a real disk, with the defaults.
func TestDriverOnDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute of real time")
	}
	drivertest.Run(t, harness(driver.Written, func(t testing.TB) Options {
		return Options{Dir: t.TempDir(), Sync: Interval(time.Second)}
	}))
}
