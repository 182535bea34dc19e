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
			Driver: "memory", LeaseScope: driver.PerMessage, MinLease: time.Second, DefaultLease: 10 * time.Second,
			KeyedPriority: driver.Everything, Parallel: driver.Everything, Dedup: driver.Exact, IDWindow: time.Minute,
			Bound: driver.PerTopic, AtomicPublish: driver.Everything, AtomicEmit: driver.Everything, Counts: driver.Exact,
			GetByID: driver.Index, PhysicalDelete: true, History: driver.RetainedOnly, Durability: driver.InMemory,
			Levels: []driver.Durability{driver.InMemory}, MaxBody: 4 << 20, Local: true,
		},
		PlantRaw: func(ctx context.Context, d driver.Driver, topic string, raw []byte) error {
			return d.(*memory.Driver).StoreRaw(ctx, topic, raw)
		},
		Virtual: true,
	})
}
