//go:build torture

package rig

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/kafkatest"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/test/torture/workload"
	"github.com/ferrymq/ferry/worker"
)

// fork publishes to many keys, and handles them; one key fails whenever it is told to.
type fork struct {
	broker  *ferry.Broker
	failing atomic.Bool

	mu    sync.Mutex
	sent  map[string]time.Time
	took  []time.Duration // of the other keys, in the phase that runs
	count int
}

const badKey = "bad"

// flood publishes followers of the bad key, all at once: six times as many are what an hour brings at 20 a second.
func (f *fork) flood(t *testing.T) {
	t.Helper()
	f.failing.Store(true)
	for range 12 {
		batch := make([]*ferry.Message, 1000)
		for i := range batch {
			f.count++
			batch[i] = &ferry.Message{ID: fmt.Sprint("m", f.count), Topic: Topic, Key: badKey, Body: make([]byte, 256)}
		}
		if _, err := f.broker.PublishBatch(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
}

// phase publishes 200 messages/s for a while, a tenth of them to the bad key, and returns how long the others took.
func (f *fork) phase(t *testing.T, bad bool, lasts time.Duration) []time.Duration {
	t.Helper()
	f.failing.Store(bad)
	f.mu.Lock()
	f.took = nil
	f.mu.Unlock()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(lasts); time.Now().Before(end); <-tick.C {
		f.count++
		m := &ferry.Message{ID: fmt.Sprint("m", f.count), Topic: Topic, Key: fmt.Sprint("k", f.count%50), Body: []byte("x")}
		if f.count%10 == 0 {
			m.Key = badKey
		}
		f.mu.Lock()
		f.sent[m.ID] = time.Now()
		f.mu.Unlock()
		if _, err := f.broker.Publish(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	f.failing.Store(false)
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.took)
}

func (f *fork) handle(_ context.Context, d *ferry.Delivery) error {
	if d.Key == badKey {
		if f.failing.Load() {
			return errors.New("the bad key fails")
		}
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.took = append(f.took, time.Since(f.sent[d.ID]))
	return nil
}

// A key that fails for as long as it likes, with followers that arrive all the time, must not delay the others. Phases
// with and without it take turns on one broker, so that both see the same machine.
func TestKafkaFailingKey(t *testing.T) {
	c := kafkatest.Single(t)
	broker, err := open.URL(t.Context(), "kafka://"+c.Addrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = broker.Close(context.WithoutCancel(t.Context())) }()
	f := &fork{broker: broker, sent: map[string]time.Time{}}
	w := worker.New(broker, worker.Options{Concurrency: 64, MaxAttempts: 1000, MaxDeliveries: 1000,
		Retry: ferry.RetryPolicy{Delays: []time.Duration{500 * time.Millisecond, 2 * time.Second}, MaxElapsed: time.Hour}})
	worker.HandleRaw(w, Topic, f.handle)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = w.Run(ctx) })
	defer running.Wait()
	defer stop()
	f.phase(t, false, 5*time.Second) // joining, and warm-up
	var with, without []time.Duration
	before, most := liveHeap(), uint64(0)
	for range 6 {
		without = append(without, f.phase(t, false, 5*time.Second)...)
		f.flood(t)
		f.phase(t, true, time.Second) // while they are parked
		with = append(with, f.phase(t, true, 5*time.Second)...)
		most = max(most, liveHeap())
		drained(t, broker)
	}
	p50, p99 := percentiles(without)
	p50With, p99With := percentiles(with)
	t.Logf("other keys while one fails: p50 %v (%.2f x), p99 %v (%.2f x of %v), %d and %d messages", p50With,
		float64(p50With)/float64(p50),
		p99With, float64(p99With)/float64(p99), p99, len(with), len(without))
	t.Logf("live heap: %d MiB, and at most %d MiB with 12,000 followers parked", before>>20, most>>20)
	if most > before+100<<20 {
		t.Error("followers of the failing key stay in memory")
	}
	if p99With > 3*p99+100*time.Millisecond { // the figure is for a quiet machine; this is for one that is not
		t.Error("one failing key holds up the others")
	}
}

func liveHeap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func percentiles(ds []time.Duration) (p50, p99 time.Duration) {
	slices.Sort(ds)
	return ds[len(ds)/2], ds[len(ds)*99/100]
}

// drained waits until the bad key has caught up: nothing is left of it, in the topic or beside it.
func drained(t *testing.T, b *ferry.Broker) {
	t.Helper()
	eventually(t, "nothing is left", func() bool {
		s, err := b.Driver().Stats(t.Context(), Topic)
		return err == nil && workload.Left(s, []string{driver.DefaultGroup}) == 0
	})
}
