package memory_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
)

// BenchmarkPublishReceiveAck moves 128-byte messages through a topic, one by one and in batches.
func BenchmarkPublishReceiveAck(b *testing.B) {
	for _, bc := range []struct {
		name  string
		batch int
		keyed bool
	}{{"single", 1, false}, {"batch", 100, false}, {"keyed", 100, true}} {
		b.Run(bc.name, func(b *testing.B) { moveMessages(b, bc.batch, bc.keyed) })
	}
}

func moveMessages(b *testing.B, batch int, keyed bool) {
	ctx := context.Background()
	d := newMemory(b, memory.Options{})
	defer func() { _ = d.Close(ctx) }()
	s, err := d.Subscribe(ctx, driver.SubscribeOptions{Topic: "bench", Instance: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	body := make([]byte, 128)
	msgs := make([]*driver.Message, batch)
	settlements := make([]driver.Settlement, 0, batch)
	ids := make([]string, 4_000)
	for i := range ids {
		ids[i] = fmt.Sprintf("0198c0de-0000-7000-8000-%012d", i)
	}
	for i := range msgs {
		msgs[i] = &driver.Message{Topic: "bench", Body: body}
		if keyed {
			msgs[i].Key = fmt.Sprint(i % 50)
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; n += batch {
		for i, m := range msgs {
			m.ID = ids[(n+i)%len(ids)]
		}
		if _, err := d.Publish(ctx, msgs, driver.PublishOptions{}); err != nil {
			b.Fatal(err)
		}
		for got := 0; got < batch; {
			ds, err := s.Receive(ctx, batch)
			if err != nil {
				b.Fatal(err)
			}
			settlements = settlements[:0]
			for _, d := range ds {
				settlements = append(settlements, driver.Settlement{Delivery: d})
			}
			s.Settle(ctx, settlements)
			got += len(ds)
		}
	}
}

// BenchmarkPipeline publishes in batches while another goroutine receives and acks.
func BenchmarkPipeline(b *testing.B) {
	ctx := context.Background()
	d := newMemory(b, memory.Options{})
	defer func() { _ = d.Close(ctx) }()
	s, err := d.Subscribe(ctx, driver.SubscribeOptions{Topic: "bench", Instance: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	const batch = 100
	slots := make(chan struct{}, 100) // batches under way
	n := (b.N + batch - 1) / batch
	b.ReportAllocs()
	b.ResetTimer()
	go func() {
		body := make([]byte, 128)
		msgs := make([]*driver.Message, batch)
		for i := range n {
			slots <- struct{}{}
			for j := range msgs {
				msgs[j] = &driver.Message{ID: "0198c0de-0000-7000-8000-" + strconv.Itoa(i*batch+j), Topic: "bench", Body: body}
			}
			_, _ = d.Publish(ctx, msgs, driver.PublishOptions{})
		}
	}()
	settlements := make([]driver.Settlement, 0, batch)
	for got, freed := 0, 0; got < n*batch; {
		ds, err := s.Receive(ctx, batch)
		if err != nil {
			b.Fatal(err)
		}
		settlements = settlements[:0]
		for _, d := range ds {
			settlements = append(settlements, driver.Settlement{Delivery: d})
		}
		s.Settle(ctx, settlements)
		for got += len(ds); freed < got/batch; freed++ {
			<-slots
		}
	}
	b.ReportMetric(float64(n*batch)/b.Elapsed().Seconds(), "msg/s")
}
