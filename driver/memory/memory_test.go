package memory_test

import (
	"context"
	"errors"
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
		Open: func(t testing.TB) driver.Driver { return newMemory(t, memory.Options{}) },
		Want: driver.Capabilities{
			Driver: "memory", LeaseScope: driver.LeasePerMessage, MinLease: time.Second, DefaultLease: 10 * time.Second,
			KeyedPriority: driver.PriorityEverywhere, Parallel: driver.ParallelUnbounded, Dedup: driver.DedupExact,
			IDWindow: time.Minute,
			Bound:    driver.BoundPerTopic, AtomicPublish: driver.AtomicEverywhere, AtomicEmit: driver.AtomicEverywhere,
			Counts:  driver.CountsExact,
			GetByID: driver.LookupIndexed, PhysicalDelete: true, History: driver.HistoryKept, Endings: true,
			Durability: driver.InMemory,
			Levels:     []driver.Durability{driver.InMemory}, MaxBody: 4 << 20, Local: true,
		},
		PlantRaw: func(ctx context.Context, d driver.Driver, topic string, raw []byte) error {
			return d.(*memory.Driver).StoreRaw(ctx, topic, raw)
		},
		Virtual: true,
	})
}

// newMemory returns an empty broker in memory.
func newMemory(t testing.TB, o memory.Options) *memory.Driver {
	t.Helper()
	d, err := memory.New(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestNegativeOptionsAreRefused(t *testing.T) {
	for _, o := range []memory.Options{{MaxBody: -1}, {MaxMessages: -1}} {
		if _, err := memory.New(t.Context(), o); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%+v: got %v, want ErrInvalid", o, err)
		}
	}
}
