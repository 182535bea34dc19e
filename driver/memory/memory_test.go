package memory_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/drivertest"
	"github.com/ferrymq/ferry/driver/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestDriver(t *testing.T) {
	drivertest.Run(t, drivertest.Harness{
		Open: func(testing.TB) driver.Driver { return memory.New(memory.Options{}) },
		Want: driver.Capabilities{
			Driver: "memory", LeaseScope: driver.LeasePerMessage, MinLease: time.Second, DefaultLease: 10 * time.Second,
			KeyedPriority: driver.PriorityEverywhere, Parallel: driver.ParallelUnbounded, Dedup: driver.DedupExact, IDWindow: time.Minute,
			Bound: driver.BoundPerTopic, AtomicPublish: driver.AtomicEverywhere, AtomicEmit: driver.AtomicEverywhere, Counts: driver.CountsExact,
			GetByID: driver.LookupIndexed, PhysicalDelete: true, History: driver.HistoryKept, Durability: driver.InMemory,
			Levels: []driver.Durability{driver.InMemory}, MaxBody: 4 << 20, Local: true,
		},
		PlantRaw: func(ctx context.Context, d driver.Driver, topic string, raw []byte) error {
			return d.(*memory.Driver).StoreRaw(ctx, topic, raw)
		},
		Virtual: true,
	})
}
