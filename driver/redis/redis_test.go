package redis_test

import (
	"context"
	"crypto/rand"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/drivertest"
	"github.com/ferrymq/ferry/driver/redis"
	"github.com/ferrymq/ferry/internal/redistest"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(redistest.Main(m))
}

// open returns a driver with a namespace of its own.
func open(t testing.TB, url, prefix string) *redis.Driver {
	t.Helper()
	d, err := redis.New(context.Background(), redis.Options{URL: url, Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func openSharded(t testing.TB, url, prefix string, shards int) *redis.Driver {
	t.Helper()
	d, err := redis.New(context.Background(), redis.Options{URL: url, Prefix: prefix, Shards: shards})
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
			return open(t, url, d.(*redis.Driver).Prefix())
		},
		Beside: func(t testing.TB, d driver.Driver) driver.Driver { return open(t, url, d.(*redis.Driver).Prefix()) },
		PlantRaw: func(ctx context.Context, d driver.Driver, topic string, raw []byte) error {
			return d.(*redis.Driver).StoreRaw(ctx, topic, raw)
		},
		Want:  want,
		Steps: 10_000,
	}
}

func capabilities(level driver.Durability, levels ...driver.Durability) driver.Capabilities {
	return driver.Capabilities{
		Driver: "redis", LeaseScope: driver.LeasePerMessage, MinLease: time.Second, DefaultLease: 10 * time.Second,
		KeyedPriority: driver.PriorityEverywhere, Parallel: driver.ParallelUnbounded, Dedup: driver.DedupExact,
		IDWindow: time.Minute,
		Bound:    driver.BoundPerShard, AtomicPublish: driver.AtomicPerShard, AtomicEmit: driver.AtomicPerShard,
		Counts:  driver.CountsExact,
		GetByID: driver.LookupIndexed, PhysicalDelete: true, History: driver.HistoryNone, Durability: level,
		Levels: levels, MaxBody: 4 << 20,
	}
}

func TestDriver(t *testing.T) {
	drivertest.Run(t, harness(redistest.Shared(t).URL(), capabilities(driver.InMemory, driver.InMemory)))
}
