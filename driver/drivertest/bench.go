package drivertest

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/ferrymq/ferry/driver"
)

// Sizes that make figures of different drivers comparable.
const (
	benchBody  = 256
	benchBatch = 100
	benchKeys  = 1000
)

// Bench measures a driver, in messages: publishing, in batches and in parallel, and draining, without keys and with.
func Bench(b *testing.B, h Harness) {
	h = h.resolved(b)
	for _, c := range []struct {
		name string
		run  func(*bench)
	}{
		{"publish batch", (*bench).publishBatch},
		{"publish parallel", (*bench).publishParallel},
		{"drain", func(x *bench) { x.drain("") }},
		{"drain keyed", func(x *bench) { x.drain("keyed") }},
		{"publish and drain", (*bench).roundTrip},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			x := &bench{B: b, Driver: h.Open(b)}
			b.Cleanup(func() {
				if err := x.Close(context.Background()); err != nil {
					b.Errorf("Close: %v", err)
				}
			})
			c.run(x)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
		})
	}
}

// bench is one benchmark with its driver.
type bench struct {
	*testing.B
	driver.Driver
	ids  atomic.Int64
	body [benchBody]byte
}

// batch makes n messages; with a prefix for keys, spread over many keys.
func (x *bench) batch(n int, keys string) []*driver.Message {
	ms := make([]*driver.Message, n)
	for i := range ms {
		id := x.ids.Add(1)
		ms[i] = &driver.Message{ID: "m" + strconv.FormatInt(id, 36), Topic: topic, Body: x.body[:]}
		if keys != "" {
			ms[i].Key = keys + strconv.FormatInt(id%benchKeys, 36)
		}
	}
	return ms
}

func (x *bench) publish(ms []*driver.Message) {
	if _, err := x.Publish(context.Background(), ms, driver.PublishOptions{}); err != nil {
		x.Errorf("Publish: %v", err)
	}
}

func (x *bench) publishBatch() {
	for left := x.N; left > 0; left -= benchBatch {
		x.StopTimer()
		ms := x.batch(min(benchBatch, left), "")
		x.StartTimer()
		x.publish(ms)
	}
}

func (x *bench) publishParallel() {
	x.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			x.publish(x.batch(1, ""))
		}
	})
}

func (x *bench) subscribe() driver.Subscription {
	s, err := x.Subscribe(context.Background(), driver.SubscribeOptions{Topic: topic, Instance: "bench", MaxRun: 10})
	if err != nil {
		x.Fatalf("Subscribe: %v", err)
	}
	return s
}

// take receives and acks n messages.
func (x *bench) take(s driver.Subscription, n int) {
	var ss [benchBatch]driver.Settlement
	for n > 0 {
		ds, err := s.Receive(context.Background(), min(benchBatch, n))
		if err != nil {
			x.Fatalf("Receive: %v", err)
		}
		for i, d := range ds {
			ss[i] = driver.Settlement{Delivery: d, Outcome: driver.Ack}
		}
		for _, err := range s.Settle(context.Background(), ss[:len(ds)]) {
			if err != nil {
				x.Fatalf("Settle: %v", err)
			}
		}
		n -= len(ds)
	}
}

func (x *bench) drain(keys string) {
	s := x.subscribe()
	for left := x.N; left > 0; left -= benchBatch {
		x.publish(x.batch(min(benchBatch, left), keys))
	}
	x.ResetTimer()
	x.take(s, x.N)
}

func (x *bench) roundTrip() {
	s := x.subscribe()
	for left := x.N; left > 0; left -= benchBatch {
		n := min(benchBatch, left)
		x.publish(x.batch(n, ""))
		x.take(s, n)
	}
}
