package disk

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/drivertest"
)

// BenchmarkDriver measures what every driver is measured by, with an interval.
func BenchmarkDriver(b *testing.B) {
	drivertest.Bench(b, harness(driver.Written, func(t testing.TB) Options {
		return Options{Dir: t.TempDir(), Sync: Interval(time.Second)}
	}))
}

// BenchmarkKV measures named values that survive a power loss: a swap is one group commit, as a publish is.
func BenchmarkKV(b *testing.B) {
	drivertest.BenchKV(b, harness(driver.Synced, func(t testing.TB) Options { return Options{Dir: t.TempDir()} }))
}

// BenchmarkPublish measures publishes that survive a power loss, by concurrent callers, beside Pebble doing the same.
func BenchmarkPublish(b *testing.B) {
	for _, callers := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("ferry/callers=%d", callers), func(b *testing.B) { benchPublish(b, callers) })
		b.Run(fmt.Sprintf("pebble/callers=%d", callers), func(b *testing.B) { benchPebble(b, callers) })
	}
}

// BenchmarkCallers publishes one message of 1 KB at a time from some callers, through a broker, and reports how many
// messages share a sync. Pebble does the same.
func BenchmarkCallers(b *testing.B) {
	for _, callers := range []int{1, 2, 8, 64, 256} {
		b.Run(strconv.Itoa(callers), func(b *testing.B) {
			d, syncs := counted(b, b.TempDir())
			broker, err := ferry.New(d, ferry.Options{})
			if err != nil {
				b.Fatal(err)
			}
			m := &ferry.Message{Topic: "jobs", Body: make([]byte, 1024)}
			b.ReportAllocs()
			share(b, callers, func() error {
				_, err := broker.Publish(ctx, m)
				return err
			})
			b.ReportMetric(float64(b.N)/float64(syncs.Load()), "msg/sync")
			if err := broker.Close(ctx); err != nil {
				b.Error(err)
			}
		})
	}
}

// counted opens a broker whose syncs are counted.
func counted(t testing.TB, dir string) (*Driver, *atomic.Int64) {
	d, n := open(t, Options{Dir: dir}), new(atomic.Int64)
	sync := d.store.c.sync
	d.store.c.sync = func() error {
		n.Add(1)
		return sync()
	}
	return d, n
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
	db, err := pebble.Open(b.TempDir(), &pebble.Options{MemTableSize: writeBuffer, MemTableStopWritesThreshold: 4,
		Logger: &fatalLogger{}})
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

// BenchmarkDrain measures how fast a backlog of 1 KB messages is received and settled, beside Pebble reading and
// deleting.
func BenchmarkDrain(b *testing.B) {
	b.Run("ferry", benchDrain)
	b.Run("pebble", benchPebbleDrain)
}

const (
	drainers   = 2
	drainBatch = 256
)

func benchDrain(b *testing.B) {
	d := open(b, Options{Dir: b.TempDir(), Sync: Interval(time.Second)})
	fill(b, d, b.N)
	s, err := d.Subscribe(ctx, driver.SubscribeOptions{Topic: "jobs", Instance: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	drainShared(b, func(n int) error {
		ds, err := s.Receive(ctx, n)
		if err != nil {
			return err
		}
		ss := make([]driver.Settlement, len(ds))
		for i, x := range ds {
			ss[i].Delivery = x
		}
		return errors.Join(s.Settle(ctx, ss)...)
	})
	if err := d.Close(ctx); err != nil {
		b.Error(err)
	}
}

func benchPebbleDrain(b *testing.B) {
	db, err := pebble.Open(b.TempDir(), &pebble.Options{MemTableSize: writeBuffer, MemTableStopWritesThreshold: 4,
		Logger: &fatalLogger{}})
	if err != nil {
		b.Fatal(err)
	}
	body := make([]byte, 1024)
	for i := range body {
		body[i] = byte(i * 7919 >> 3)
	}
	key := func(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
	for i := 0; i < b.N; {
		batch := db.NewBatch()
		for end := i + 500; i < min(end, b.N); i++ {
			_ = batch.Set(key(uint64(i)), body, nil)
		}
		if err := batch.Commit(pebble.NoSync); err != nil {
			b.Fatal(err)
		}
	}
	var next atomic.Uint64
	drainShared(b, func(n int) error {
		from := next.Add(uint64(n)) - uint64(n)
		it, err := db.NewIter(&pebble.IterOptions{LowerBound: key(from), UpperBound: key(from + uint64(n))})
		if err != nil {
			return err
		}
		batch := db.NewBatch()
		for it.First(); it.Valid(); it.Next() {
			if v, err := it.ValueAndErr(); err != nil || len(v) != 1024 {
				return errors.New("not found")
			}
			_ = batch.Delete(it.Key(), nil)
		}
		return errors.Join(it.Close(), batch.Commit(pebble.NoSync), batch.Close())
	})
	if err := db.Close(); err != nil {
		b.Error(err)
	}
}

// drainShared lets drainers take b.N messages together.
func drainShared(b *testing.B, take func(n int) error) {
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ResetTimer()
	began := cpuTime(b)
	var wg sync.WaitGroup
	for range drainers {
		wg.Go(func() {
			for {
				rest := left.Add(-drainBatch) + drainBatch
				if rest <= 0 {
					return
				}
				if err := take(int(min(rest, drainBatch))); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(cpuTime(b)-began)/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
}

// share lets callers do b.N things together.
func share(b *testing.B, callers int, do func() error) {
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ResetTimer()
	began := cpuTime(b)
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
	b.ReportMetric(float64(cpuTime(b)-began)/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
}
