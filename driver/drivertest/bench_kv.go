package drivertest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// BenchKV measures the named values of a driver: how long a compare-and-swap takes beside a publish of one message,
// alone and among 64 callers, and how much is written in batches of 100 and by 64 callers at once.
func BenchKV(b *testing.B, h Harness) {
	h = h.resolved(b)
	for _, c := range []struct {
		name string
		run  func(*bench)
	}{
		{"swap", func(x *bench) { x.timed(1, x.swapper) }},
		{"swap by 64 callers", func(x *bench) { x.timed(64, x.swapper) }},
		{"publish", func(x *bench) { x.timed(1, func(int) func() { return func() { x.publish(x.batch(1, "")) } }) }},
		{"write in batches of 100", (*bench).writeBatch},
		{"write by 64 callers to 64 buckets", func(x *bench) { x.timed(64, x.writer) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			x := &bench{B: b, Driver: h.Open(b)}
			b.Cleanup(func() {
				if err := x.Close(context.Background()); err != nil {
					b.Errorf("Close: %v", err)
				}
			})
			c.run(x)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "1/s")
		})
	}
}

// timed divides b.N calls among callers, and reports how long they took.
func (x *bench) timed(callers int, caller func(i int) func()) {
	took := make([]time.Duration, 0, x.N)
	var mu sync.Mutex
	var all sync.WaitGroup
	calls := make([]func(), callers)
	for i := range calls {
		calls[i] = caller(i)
		calls[i]() // whatever a first call has to make is not measured
	}
	x.ResetTimer()
	for i, call := range calls {
		n := x.N / callers
		if i < x.N%callers {
			n++
		}
		all.Go(func() {
			mine := make([]time.Duration, n)
			for j := range mine {
				begun := time.Now()
				call()
				mine[j] = time.Since(begun)
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, mine...)
		})
	}
	all.Wait()
	x.StopTimer()
	slices.Sort(took)
	for _, p := range []int{50, 99} {
		x.ReportMetric(float64(took[len(took)*p/100])/float64(time.Millisecond), fmt.Sprintf("p%d-ms", p))
	}
}

// swapper swaps one value, each time for the one it wrote before.
func (x *bench) swapper(i int) func() {
	w := driver.Write{Name: fmt.Sprint("value", i), Data: x.body[:], If: driver.Absent}
	return func() {
		r := x.KV().Apply(context.Background(), bucket, driver.KVOptions{}, w)[0]
		if r.Err != nil {
			x.Errorf("Apply: %v", r.Err)
		}
		w.If = driver.Condition(r.Revision)
	}
}

// writer writes new values, each to another bucket than the one before.
func (x *bench) writer(i int) func() {
	n := 0
	return func() {
		n++
		w := driver.Write{Name: fmt.Sprintf("value%d-%d", i, n), Data: x.body[:], If: driver.Absent, TTL: time.Minute}
		if r := x.KV().Apply(context.Background(), fmt.Sprintf("%s.%02x", bucket, (i+7*n)%64), driver.KVOptions{},
			w)[0]; r.Err != nil {
			x.Errorf("Apply: %v", r.Err)
		}
	}
}

func (x *bench) writeBatch() {
	ws := make([]driver.Write, benchBatch)
	for left := x.N; left > 0; left -= benchBatch {
		for i := range ws { // of 10,000 names
			ws[i] = driver.Write{Name: fmt.Sprintf("value%04d", (left+i)%10_000), Data: x.body[:], TTL: time.Minute}
		}
		for _, r := range x.KV().Apply(context.Background(), bucket, driver.KVOptions{}, ws[:min(left, benchBatch)]...) {
			if r.Err != nil {
				x.Fatalf("Apply: %v", r.Err)
			}
		}
	}
}
