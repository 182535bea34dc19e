package redis_test

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/drivertest"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/internal/uuid7"
)

func BenchmarkDriver(b *testing.B) {
	drivertest.Bench(b, harness(redistest.Shared(b).URL(), capabilities(driver.InMemory, driver.InMemory)))
}

func BenchmarkKV(b *testing.B) {
	drivertest.BenchKV(b, harness(redistest.Shared(b).URL(), capabilities(driver.InMemory, driver.InMemory)))
}

// BenchmarkLoad compares the driver with bare pipelined commands: see redistest.BenchLoad.
func BenchmarkLoad(b *testing.B) {
	redistest.BenchLoad(b, func(l *redistest.Load) driver.Driver { return open(l, l.Server.URL(), "bench") }, raw)
}

// raw is the least that a queue of these messages costs: a hash of bodies and a list of ids, several messages in one
// command.
func raw(l *redistest.Load, n int) {
	ctx := context.Background()
	l.Phase("publish", n, func() {
		l.Publish(func(first int) error {
			bodies, ids := make([]any, 0, 2*redistest.LoadBatch), make([]any, 0, redistest.LoadBatch)
			for i := range redistest.LoadBatch {
				id := uuid7.New(time.Now())
				bodies, ids = append(bodies, id, l.Body(first+i)), append(ids, id)
			}
			_, err := l.Client.Pipelined(ctx, func(p goredis.Pipeliner) error {
				p.HSet(ctx, "bodies", bodies...)
				p.RPush(ctx, "ids", ids...)
				return nil
			})
			return err
		})
	})
	l.Phase("drain", n, func() {
		redistest.Workers(redistest.LoadWorkers, func(int) bool {
			ids, err := l.Client.LPopCount(ctx, "ids", redistest.LoadBatch).Result()
			if err != nil {
				return false
			}
			if err := l.Client.HMGet(ctx, "bodies", ids...).Err(); err != nil {
				l.Error(err)
			}
			if err := l.Client.HDel(ctx, "bodies", ids...).Err(); err != nil {
				l.Error(err)
			}
			return true
		})
	})
}

// BenchmarkHandOver drains with one loop that receives and one that settles, where a Receive has to wait for a
// settlement: for room, or for the end of a run. It reports how many scripts the server runs for a message.
func BenchmarkHandOver(b *testing.B) {
	for _, c := range []struct {
		name string
		keys int
		o    driver.SubscribeOptions
	}{{"one at a time", 0, driver.SubscribeOptions{MaxInflight: 1}},
		{"runs of 32", 1, driver.SubscribeOptions{MaxRun: 32}}} {
		b.Run(c.name, func(b *testing.B) { handOver(redistest.NewLoad(b), c.keys, c.o) })
	}
}

func handOver(l *redistest.Load, keys int, o driver.SubscribeOptions) {
	ctx, done := context.WithCancel(context.Background())
	d := open(l, l.Server.URL(), "bench")
	defer func() { _ = d.Close(context.Background()) }()
	n := l.Messages()
	l.Fill(d, keys)
	o.Topic, o.Instance = "load", "bench"
	s, err := d.Subscribe(ctx, o)
	if err != nil {
		l.Fatal(err)
	}
	l.Phase("drain", n, func() {
		taken := make(chan []*driver.Delivery, 1)
		go func() {
			defer close(taken)
			for {
				ds, err := s.Receive(ctx, redistest.LoadBatch)
				if err != nil {
					return
				}
				taken <- ds
			}
		}()
		left := n
		for ds := range taken {
			l.Ack(s, ds)
			if left -= len(ds); left == 0 {
				done()
			}
		}
	})
	done()
	l.ReportMetric(float64(scripts(l))/float64(n), "scripts/op")
}

// scripts returns how many the server has run in a phase.
func scripts(l *redistest.Load) (sum int) {
	l.Commands(func(command string, calls, _ int) {
		if strings.HasPrefix(command, "eval") {
			sum += calls
		}
	})
	return sum
}

// BenchmarkCallers publishes one message at a time from some callers, through a broker, which gathers them. It reports
// how many messages a script carries, and the processor time of the server for each.
func BenchmarkCallers(b *testing.B) {
	for _, callers := range []int{1, 10, 50, 100, 256} {
		b.Run(strconv.Itoa(callers), func(b *testing.B) { publishAlone(redistest.NewLoad(b), callers) })
	}
}

func publishAlone(l *redistest.Load, callers int) {
	ctx := context.Background()
	broker, err := ferry.New(open(l, l.Server.URL(), "bench"), ferry.Options{})
	if err != nil {
		l.Fatal(err)
	}
	defer func() { _ = broker.Close(ctx) }()
	var turn atomic.Int64
	publish := func(int) bool {
		i := turn.Add(1)
		if i > int64(l.N) {
			return false
		}
		m := &ferry.Message{Topic: "load", Body: l.Body(int(i))}
		if _, err := broker.Publish(ctx, m); err != nil {
			l.Error(err)
		}
		return true
	}
	used := clientTime()
	l.ReportAllocs()
	l.Phase("publish", l.N, func() { redistest.Workers(callers, publish) })
	l.ReportMetric((clientTime()-used)/float64(l.N), "client-us")
	l.ReportMetric(float64(l.N)/float64(scripts(l)), "messages/script")
}

func clientTime() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e3
}
