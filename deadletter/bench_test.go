package deadletter_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/disk"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/driver/redis"
	"github.com/ferrymq/ferry/driver/redisstream"
	"github.com/ferrymq/ferry/internal/redistest"
)

// letters is how many dead letters there are: FERRY_BENCH_LETTERS, or 20,000.
func letters(b *testing.B) int {
	n, err := strconv.Atoi(os.Getenv("FERRY_BENCH_LETTERS"))
	if err != nil {
		return 20_000
	}
	return n
}

func cemetery(b *testing.B, d driver.Driver) *deadletter.Queue {
	b.Helper()
	broker, err := ferry.New(d, ferry.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = broker.Close(context.Background()) })
	queue, err := deadletter.New(broker)
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	sub, err := d.Subscribe(ctx, driver.SubscribeOptions{Topic: topic, Instance: "bench", Lease: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	const part = 1000
	for done := 0; done < letters(b); done += part {
		msgs := make([]*driver.Message, part)
		for i := range msgs {
			n := done + i
			msgs[i] = &driver.Message{ID: fmt.Sprint("m", n), Topic: topic,
				Body: fmt.Appendf(nil, `{"id":%d,"user":{"name":"u%d"},"text":"%0200d"}`, n, n%1000, n)}
		}
		if _, err := d.Publish(ctx, msgs, driver.PublishOptions{}); err != nil {
			b.Fatal(err)
		}
		for left := part; left > 0; {
			ds, err := sub.Receive(ctx, left)
			if err != nil {
				b.Fatal(err)
			}
			list := make([]driver.Settlement, len(ds))
			for i, one := range ds {
				list[i] = driver.Settlement{Delivery: one, Outcome: driver.Dead,
					Failure: &driver.Failure{Reason: driver.ReasonTimeout, Error: "timeout after " + one.ID[1:] + " ms"}}
			}
			if err := errors.Join(sub.Settle(ctx, list)...); err != nil {
				b.Fatal(err)
			}
			left -= len(ds)
		}
	}
	if err := sub.Close(ctx); err != nil {
		b.Fatal(err)
	}
	return queue
}

// BenchmarkPages reports how long pages take at the median and at worst, all the way through.
func BenchmarkPages(b *testing.B) {
	for _, backend := range []struct {
		name string
		open func(b *testing.B) driver.Driver
	}{
		{"memory", func(b *testing.B) driver.Driver { return newMemory(b, memory.Options{}) }},
		{"redis", func(b *testing.B) driver.Driver {
			server := redistest.Single(b, redistest.Options{})
			d, err := redis.New(context.Background(), redis.Options{URL: server.URL()})
			if err != nil {
				b.Fatal(err)
			}
			return d
		}},
	} {
		b.Run(backend.name, func(b *testing.B) {
			queue := cemetery(b, backend.open(b))
			for name, where := range map[string]string{"all": "", "one in a thousand": `json.user.name == "u7"`,
				"none": `error contains "nothing like it"`} {
				b.Run(name, func(b *testing.B) { pages(b, queue, where) })
			}
		})
	}
}

func pages(b *testing.B, queue *deadletter.Queue, where string) {
	q := deadletter.Query{}
	if where != "" {
		f, err := deadletter.ParseFilter(where)
		if err != nil {
			b.Fatal(err)
		}
		q.Where = f
	}
	var took []time.Duration
	scanned := 0
	for b.Loop() {
		begin := time.Now()
		p, err := queue.Browse(context.Background(), q)
		if err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begin))
		if q.Cursor = p.Next; p.Next == "" {
			scanned = p.Scanned
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "worst-ms")
	b.ReportMetric(float64(scanned), "to-the-end")
}

// BenchmarkReplay replays all letters, as many at a time as Replay does. That of Kafka is
// BenchmarkReplay of driver/kafka, in a process that does not own the letters.
func BenchmarkReplay(b *testing.B) {
	ctx := context.Background()
	for _, backend := range []struct {
		name string
		open func(b *testing.B) (driver.Driver, error)
	}{
		{"memory", func(b *testing.B) (driver.Driver, error) { return newMemory(b, memory.Options{}), nil }},
		{"disk", func(b *testing.B) (driver.Driver, error) { return disk.New(ctx, disk.Options{Dir: b.TempDir()}) }},
		{"redis", func(b *testing.B) (driver.Driver, error) {
			server := redistest.Single(b, redistest.Options{AOF: "everysec"})
			return redis.New(ctx, redis.Options{URL: server.URL()})
		}},
		{"redisstream", func(b *testing.B) (driver.Driver, error) {
			server := redistest.Single(b, redistest.Options{AOF: "everysec"})
			return redisstream.New(ctx, redisstream.Options{URL: server.URL()})
		}},
	} {
		b.Run(backend.name, func(b *testing.B) {
			took := time.Duration(0)
			for range b.N {
				b.StopTimer()
				d, err := backend.open(b)
				if err != nil {
					b.Fatal(err)
				}
				queue := cemetery(b, d)
				b.StartTimer()
				start := time.Now()
				report, err := queue.Replay(ctx, deadletter.ReplayOptions{Selection: deadletter.Selection{Topic: topic}})
				if err != nil || report.Done != letters(b) {
					b.Fatalf("%+v, %v", report, err)
				}
				took += time.Since(start)
			}
			b.ReportMetric(float64(letters(b)*b.N)/took.Seconds(), "letters/s")
		})
	}
}

func BenchmarkFilter(b *testing.B) {
	for _, where := range []string{`reason == "timeout" and attempts > 3 and key startsWith "user-"`,
		`json.user.id == 7`} {
		b.Run(where, func(b *testing.B) {
			f, err := deadletter.ParseFilter(where)
			if err != nil {
				b.Fatal(err)
			}
			l := sample()
			b.ReportAllocs()
			for b.Loop() {
				if yes, err := f.Match(b.Context(), l); !yes || err != nil {
					b.Fatal(yes, err)
				}
			}
		})
	}
}
