package kafka_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/drivertest"
	"github.com/ferrymq/ferry/driver/kafka"
	"github.com/ferrymq/ferry/internal/kafkatest"
)

func TestMain(m *testing.M) {
	if where := os.Getenv(victimEnv); where != "" {
		fmt.Println(victim(where))
		os.Exit(1)
	}
	if how := os.Getenv(writerEnv); how != "" {
		fmt.Println(writer(how))
		os.Exit(1)
	}
	goleak.VerifyTestMain(kafkatest.Main(m))
}

// open returns a driver with a namespace of its own.
func open(t testing.TB, c *kafkatest.Cluster, namespace string) *kafka.Driver {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	d, err := kafka.New(ctx, kafka.Options{Brokers: c.Addrs(), Namespace: namespace, Partitions: 3, InternalPartitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// harness judges drivers that are opened with some options.
func harness(together driver.Atomicity, opening func(t testing.TB, namespace string) *kafka.Driver) drivertest.Harness {
	return drivertest.Harness{
		Open: func(t testing.TB) driver.Driver { return opening(t, "t"+rand.Text()[:10]+".") },
		Reopen: func(t testing.TB, d driver.Driver) driver.Driver {
			t.Helper()
			if err := d.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			return opening(t, d.(*kafka.Driver).Namespace())
		},
		Beside: func(t testing.TB, d driver.Driver) driver.Driver { return opening(t, d.(*kafka.Driver).Namespace()) },
		PlantRaw: func(ctx context.Context, d driver.Driver, topic string, raw []byte) error {
			return d.(*kafka.Driver).StoreRaw(ctx, topic, raw)
		},
		Want: driver.Capabilities{
			Driver: "kafka", LeaseScope: driver.LeasePerPartition, MinLease: 6 * time.Second, DefaultLease: 6 * time.Second,
			KeyedPriority: driver.PriorityInFetchWindow, Parallel: driver.ParallelPerPartition, Dedup: driver.DedupPerSession,
			IDWindow: time.Minute,
			Bound:    driver.BoundEstimated, AtomicPublish: together, AtomicEmit: together, Counts: driver.CountsEstimated,
			GetByID: driver.LookupScans, SettleLag: time.Second, History: driver.HistoryKept, Durability: driver.Written,
			Levels: []driver.Durability{driver.Written}, MaxBody: 900 << 10,
		},
		Steps: 200,
		Late:  time.Minute, // a JVM, a race detector and other tests share two cores; the bench measures it
	}
}

func TestDriver(t *testing.T) {
	c := kafkatest.Shared(t)
	drivertest.Run(t, harness(driver.AtomicNever, func(t testing.TB,
		namespace string) *kafka.Driver {
		return open(t, c, namespace)
	}))
}
