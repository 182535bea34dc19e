package memory_test

import (
	"context"
	"fmt"
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
	d := memory.New(memory.Options{})
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
