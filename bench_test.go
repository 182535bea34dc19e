package ferry_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
)

// sink accepts everything and keeps nothing, so that only the way to the driver is measured.
type sink struct {
	driver.Driver
	local bool
	calls atomic.Int64
}

func (s *sink) Capabilities() driver.Capabilities {
	c := s.Driver.Capabilities()
	c.Local = s.local
	return c
}

func (s *sink) Publish(_ context.Context, msgs []*driver.Message, _ driver.PublishOptions) ([]driver.Receipt, error) {
	s.calls.Add(1)
	rs := make([]driver.Receipt, len(msgs))
	for i, m := range msgs {
		rs[i].ID = m.ID
	}
	return rs, nil
}

func BenchmarkPublish(b *testing.B) {
	message := &ferry.Message{Topic: "orders", Body: make([]byte, 128)}
	for _, c := range []struct {
		name    string
		local   bool
		callers int
	}{{"direct", true, 1}, {"gathered/1", false, 1}, {"gathered/50", false, 50}} {
		b.Run(c.name, func(b *testing.B) {
			d := &sink{Driver: newMemory(b, memory.Options{}), local: c.local}
			broker := newBroker(b, d, ferry.Options{})
			b.ReportAllocs()
			b.SetParallelism(max(1, c.callers/2))
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					if _, err := broker.Publish(context.Background(), message); err != nil {
						b.Error(err)
					}
				}
			})
			b.ReportMetric(float64(b.N)/float64(d.calls.Load()), "messages/call")
		})
	}
	b.Run("batch of 100", func(b *testing.B) {
		broker := newBroker(b, &sink{Driver: newMemory(b, memory.Options{}), local: true}, ferry.Options{})
		batch := slices.Repeat([]*ferry.Message{message}, 100)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := broker.PublishBatch(context.Background(), batch); err != nil {
				b.Error(err)
			}
		}
	})
	b.Run("async", func(b *testing.B) {
		d := &sink{Driver: newMemory(b, memory.Options{})}
		broker := newBroker(b, d, ferry.Options{})
		b.ReportAllocs()
		for b.Loop() {
			if err := broker.PublishFunc(context.Background(), message, func(ferry.Receipt) {}); err != nil {
				b.Error(err)
			}
		}
		if err := broker.Flush(context.Background()); err != nil {
			b.Error(err)
		}
		b.ReportMetric(float64(b.N)/float64(d.calls.Load()), "messages/call")
	})
}
