package kafka_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/drivertest"
	"github.com/ferrymq/ferry/driver/kafka"
	"github.com/ferrymq/ferry/internal/kafkatest"
)

// cpu is what this process has used: it hardly depends on what else the machine does.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkKV(b *testing.B) {
	c := kafkatest.Shared(b)
	drivertest.BenchKV(b, harness(driver.AtomicNever, func(t testing.TB,
		namespace string) *kafka.Driver {
		return open(t, c, namespace)
	}))
}

// BenchmarkDrain consumes a backlog, and the same records with a raw poll: time and client CPU of a message.
func BenchmarkDrain(b *testing.B) {
	const backlog = 200_000
	c, namespace, ctx := kafkatest.Shared(b), "s"+rand.Text()[:10]+".", context.Background()
	d, err := kafka.New(ctx, kafka.Options{Brokers: c.Addrs(), Namespace: namespace, InternalPartitions: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = d.Close(ctx) }()
	fill(b, d, backlog, func(m *driver.Message) { m.Key = "" })
	report := func(b *testing.B, start time.Time, used time.Duration) {
		b.ReportMetric(backlog/time.Since(start).Seconds(), "msgs/s")
		b.ReportMetric(float64((cpu(b)-used).Nanoseconds())/backlog, "cpu-ns/msg")
	}
	b.Run("raw", func(b *testing.B) {
		cl, err := kgo.NewClient(kgo.SeedBrokers(c.Addrs()...), kgo.ConsumeTopics(namespace+"orders"),
			kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()))
		if err != nil {
			b.Fatal(err)
		}
		defer cl.Close()
		start, used := time.Now(), cpu(b)
		for n := 0; n < backlog; {
			n += cl.PollFetches(ctx).NumRecords()
		}
		report(b, start, used)
	})
	b.Run("ferry", func(b *testing.B) {
		start, used := time.Now(), cpu(b)
		s, err := d.Subscribe(ctx, driver.SubscribeOptions{Topic: "orders", Instance: "x", Lease: time.Minute,
			MaxInflight: 5000})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(time.Since(start).Milliseconds()), "ms/join")
		for n := 0; n < backlog; {
			ds, err := s.Receive(ctx, 500)
			if err != nil {
				b.Fatal(err)
			}
			batch := make([]driver.Settlement, len(ds))
			for i, x := range ds {
				batch[i].Delivery = x
			}
			for _, err := range s.Settle(ctx, batch) {
				if err != nil {
					b.Fatal(err)
				}
			}
			n += len(ds)
		}
		report(b, start, used)
	})
}

// BenchmarkPublish stores messages from some callers at once, and the same records with raw kgo.
func BenchmarkPublish(b *testing.B) {
	const each = 20_000
	c, namespace, ctx := kafkatest.Shared(b), "s"+rand.Text()[:10]+".", context.Background()
	d, err := kafka.New(ctx, kafka.Options{Brokers: c.Addrs(), Namespace: namespace, InternalPartitions: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = d.Close(ctx) }()
	fill(b, d, 1, func(m *driver.Message) { m.Key = "" })
	raw, err := kgo.NewClient(kgo.SeedBrokers(c.Addrs()...), kgo.DefaultProduceTopic(namespace+"orders"),
		kgo.ProducerLinger(0))
	if err != nil {
		b.Fatal(err)
	}
	defer raw.Close()
	for _, callers := range []int{1, 50, 200} {
		total := each * min(callers, 50) / 50
		for name, one := range map[string]func(i int) error{
			"raw": func(int) error { return raw.ProduceSync(ctx, &kgo.Record{Value: make([]byte, bodySize)}).FirstErr() },
			"ferry": func(i int) error {
				_, err := d.Publish(ctx, []*driver.Message{{ID: fmt.Sprint("m", i), Topic: "orders", Body: make([]byte, bodySize)}},
					driver.PublishOptions{})
				return err
			},
		} {
			b.Run(fmt.Sprintf("callers=%d/%s", callers, name), func(b *testing.B) {
				start, used := time.Now(), cpu(b)
				var done sync.WaitGroup
				for range callers {
					done.Go(func() {
						for i := range total / callers {
							if err := one(i); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				done.Wait()
				b.ReportMetric(float64(total)/time.Since(start).Seconds(), "msgs/s")
				b.ReportMetric(float64((cpu(b)-used).Nanoseconds())/float64(total), "cpu-ns/msg")
			})
		}
	}
}
