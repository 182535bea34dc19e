package redisstream_test

import (
	"context"
	"crypto/rand"
	"flag"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/drivertest"
	"github.com/ferrymq/ferry/driver/redisstream"
	"github.com/ferrymq/ferry/internal/redistest"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil { // the suites mostly wait, whatever there is of processors
		panic(err)
	}
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(redistest.Main(m))
}

// open returns a driver with a namespace of its own.
func open(t testing.TB, url, prefix string) *redisstream.Driver {
	t.Helper()
	d, err := redisstream.New(context.Background(), redisstream.Options{URL: url, Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// harness runs the suite against the server at a URL, each driver in a namespace of its own.
func harness(url string, want driver.Capabilities) drivertest.Harness {
	return drivertest.Harness{
		Open: func(t testing.TB) driver.Driver { return open(t, url, "t"+rand.Text()) },
		Reopen: func(t testing.TB, d driver.Driver) driver.Driver {
			t.Helper()
			if err := d.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			return open(t, url, d.(*redisstream.Driver).Prefix())
		},
		Beside: func(t testing.TB, d driver.Driver) driver.Driver {
			return open(t, url, d.(*redisstream.Driver).Prefix())
		},
		PlantRaw: func(ctx context.Context, d driver.Driver, topic string, raw []byte) error {
			return d.(*redisstream.Driver).StoreRaw(ctx, topic, raw)
		},
		Want:  want,
		Steps: 2_000,
	}
}

func capabilities(level driver.Durability, levels ...driver.Durability) driver.Capabilities {
	return driver.Capabilities{
		Driver: "redisstream", LeaseScope: driver.LeasePerMessage, MinLease: time.Second, DefaultLease: 10 * time.Second,
		KeyedPriority: driver.PriorityInFetchWindow, Parallel: driver.ParallelPerPartition, Dedup: driver.DedupPerPartition,
		IDWindow: time.Minute,
		Bound:    driver.BoundPerPartition, AtomicPublish: driver.AtomicPerPartition, AtomicEmit: driver.AtomicNever,
		Counts:  driver.CountsExact,
		GetByID: driver.LookupIndexed, PhysicalDelete: true, History: driver.HistoryKept, Endings: true, Durability: level,
		Levels: levels, MaxBody: 4 << 20,
	}
}

func TestDriver(t *testing.T) {
	t.Parallel()
	h := harness(redistest.Shared(t).URL(), capabilities(driver.InMemory, driver.InMemory))
	h.Steps = 5_000
	drivertest.Run(t, h)
}
