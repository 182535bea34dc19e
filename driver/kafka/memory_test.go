package kafka_test

import (
	"crypto/rand"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka"
	"github.com/ferrymq/ferry/internal/kafkatest"
)

const bodySize = 256

func fill(b *testing.B, d *kafka.Driver, n int, shape func(m *driver.Message)) {
	b.Helper()
	for at := 0; at < n; at += 1000 {
		ms := make([]*driver.Message, 0, 1000)
		for i := at; i < min(n, at+1000); i++ {
			m := &driver.Message{ID: fmt.Sprintf("m%08d", i), Topic: "orders", Key: "k", Body: make([]byte, bodySize)}
			shape(m)
			ms = append(ms, m)
		}
		if _, err := d.Publish(b.Context(), ms, driver.PublishOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

func heap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

// BenchmarkParked measures what 100,000 followers of a failing key cost: memory, and whether the main topic is
// committed to its end.
func BenchmarkParked(b *testing.B) {
	const parked = 100_000
	c, namespace := kafkatest.Shared(b), "m"+rand.Text()[:10]+"."
	producer, d := open(b, c, namespace), open(b, c, namespace)
	defer func() { _, _ = producer.Close(b.Context()), d.Close(b.Context()) }()
	fill(b, producer, 1, func(m *driver.Message) { m.ID = "head" })
	s, err := d.Subscribe(b.Context(), driver.SubscribeOptions{Topic: "orders", Instance: "x", Lease: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	ds, err := s.Receive(b.Context(), 1)
	if err != nil {
		b.Fatal(err)
	}
	if err := s.Settle(b.Context(), []driver.Settlement{{Delivery: ds[0], Outcome: driver.Retry, After: time.Hour,
		Failure: &driver.Failure{}}})[0]; err != nil {
		b.Fatal(err)
	}
	before := heap()
	start := time.Now()
	fill(b, producer, parked, func(*driver.Message) {})
	for d.Unparked("orders", driver.DefaultGroup) < parked+1 {
		if time.Since(start) > 5*time.Minute {
			b.Fatalf("only %d are parked", d.Unparked("orders", driver.DefaultGroup))
		}
		time.Sleep(50 * time.Millisecond)
	}
	b.ReportMetric(heap()-before, "MB/100k")
	b.ReportMetric(time.Since(start).Seconds(), "s")
}

// BenchmarkDelayed measures what a million delayed messages cost the process that fires them.
func BenchmarkDelayed(b *testing.B) {
	const delayed = 1_000_000
	c, namespace := kafkatest.Shared(b), "m"+rand.Text()[:10]+"."
	producer := open(b, c, namespace)
	start := time.Now()
	before := heap()
	fill(b, producer, delayed, func(m *driver.Message) { m.Key, m.Delay = "", time.Hour })
	b.ReportMetric(time.Since(start).Seconds(), "s")
	b.ReportMetric(heap()-before, "MB")
	if err := producer.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
	start = time.Now()
	d := open(b, c, namespace)
	defer func() { _ = d.Close(b.Context()) }()
	st, err := d.Stats(b.Context(), "orders")
	if err != nil || st.Delayed < delayed*9/10 || st.Delayed > delayed*11/10 {
		b.Fatalf("%d delayed, %v", st.Delayed, err)
	}
	b.ReportMetric(time.Since(start).Seconds(), "s-to-reopen")
	time.Sleep(5 * time.Second) // queues fill
	b.ReportMetric(heap()-before, "MB-after-reopen")
}
