package cluster

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver/kafka/internal/record"
)

// BenchmarkSend stores 100 records at once. It pays for the context of a record, which leads from its answer to what
// waits for it: a closure, or the value of a method, would be one more allocation for each record.
func BenchmarkSend(b *testing.B) {
	brokers, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	if err != nil {
		b.Fatal(err)
	}
	defer brokers.Close()
	c, err := New(Settings{Brokers: brokers.ListenAddrs(), MaxBody: 1 << 20, Session: 6e9}, true)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Client.Close()
	rs := make([]*kgo.Record, 100)
	b.ReportAllocs()
	for b.Loop() {
		for i := range rs {
			rs[i] = &kgo.Record{Topic: "orders", Value: []byte("body")}
		}
		for _, err := range c.Send(b.Context(), rs, new(record.Scratch), nil).Wait(b.Context()) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
