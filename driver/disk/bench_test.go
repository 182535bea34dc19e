package disk

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/drivertest"
)

// BenchmarkDriver measures what every driver is measured by, with an interval.
func BenchmarkDriver(b *testing.B) {
	drivertest.Bench(b, harness(driver.Written, func(t testing.TB) Options {
		return Options{Dir: t.TempDir(), Sync: Interval(time.Second)}
	}))
}

// BenchmarkPublish measures publishes that survive a power loss, by concurrent callers, beside Pebble doing the same.
func BenchmarkPublish(b *testing.B) {
	for _, callers := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("ferry/callers=%d", callers), func(b *testing.B) { benchPublish(b, callers) })
		b.Run(fmt.Sprintf("pebble/callers=%d", callers), func(b *testing.B) { benchPebble(b, callers) })
	}
}

const benchBody = 256

func benchPublish(b *testing.B, callers int) {
	d := open(b, Options{Dir: b.TempDir()})
	var ids atomic.Int64
	body := make([]byte, benchBody)
	share(b, callers, func() error {
		m := &driver.Message{ID: fmt.Sprintf("m%011x", ids.Add(1)), Topic: "jobs", Body: body}
		_, err := d.Publish(context.Background(), []*driver.Message{m}, driver.PublishOptions{})
		return err
	})
	if err := d.Close(context.Background()); err != nil {
		b.Error(err)
	}
}

func benchPebble(b *testing.B, callers int) {
	db, err := pebble.Open(b.TempDir(), &pebble.Options{MemTableSize: writeBuffer, MemTableStopWritesThreshold: 4, Logger: &fatalLogger{}})
	if err != nil {
		b.Fatal(err)
	}
	var ids atomic.Uint64
	body := make([]byte, benchBody+64)
	share(b, callers, func() error {
		return db.Set(binary.BigEndian.AppendUint64(nil, ids.Add(1)), body, pebble.Sync)
	})
	if err := db.Close(); err != nil {
		b.Error(err)
	}
}

// share lets callers do b.N things together.
func share(b *testing.B, callers int, do func() error) {
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ResetTimer()
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := do(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
}
