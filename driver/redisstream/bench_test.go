package redisstream_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

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

const (
	loadBatch   = 100
	loadWorkers = 4
)

// BenchmarkLoad compares the driver with bare pipelined commands: 1 KB random bodies in batches of 100 over four
// connections. It reports messages per second, and the server's CPU time for each.
func BenchmarkLoad(b *testing.B) {
	for _, c := range []struct {
		name string
		keys int
	}{{"plain", 0}, {"10k keys", 10_000}, {"one key", 1}} {
		b.Run(c.name, func(b *testing.B) { newLoad(b).driver(c.keys) })
	}
	b.Run("raw", func(b *testing.B) { newLoad(b).raw() })
}

// load is one benchmark with a server of its own.
type load struct {
	*testing.B
	server *redistest.Server
	client *goredis.Client
	bodies [64][]byte
}

func newLoad(b *testing.B) *load {
	l := &load{B: b, server: redistest.Single(b, redistest.Options{})}
	l.client = goredis.NewClient(&goredis.Options{Addr: l.server.Addr()})
	b.Cleanup(func() { _ = l.client.Close() })
	for i := range l.bodies {
		l.bodies[i] = make([]byte, 1024)
		_, _ = rand.Read(l.bodies[i])
	}
	return l
}

// cpu returns the time the server's main thread has used, in microseconds.
func (l *load) cpu() float64 {
	text, err := l.client.Info(context.Background(), "cpu").Result()
	if err != nil {
		l.Fatal(err)
	}
	sum := 0.0
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "used_cpu_sys_main_thread" || name == "used_cpu_user_main_thread" {
			s, _ := strconv.ParseFloat(value, 64)
			sum += s * 1e6
		}
	}
	return sum
}

// phase measures one part of a run. With -v it tells what each command took of the server, in µs for each message.
func (l *load) phase(name string, n int, f func()) {
	l.client.ConfigResetStat(context.Background())
	before, start := l.cpu(), time.Now()
	f()
	l.ReportMetric(float64(n)/time.Since(start).Seconds(), name+"/s")
	l.ReportMetric((l.cpu()-before)/float64(n), name+"-us")
	if testing.Verbose() {
		l.commands(name, n)
	}
}

// commands tells what each command took: those of scripts are part of what the scripts took.
func (l *load) commands(name string, n int) {
	text := l.client.Info(context.Background(), "commandstats").Val()
	for line := range strings.Lines(text) {
		var calls, usec int
		command, rest, _ := strings.Cut(line, ":")
		if _, err := fmt.Sscanf(rest, "calls=%d,usec=%d", &calls, &usec); err == nil && usec*50 > n {
			l.Logf("%s %s: %d calls, %.2f us", name, command, calls, float64(usec)/float64(n))
		}
	}
}

// workers runs f in parallel until it returns false.
func workers(n int, f func(worker int) bool) {
	var wg sync.WaitGroup
	for w := range n {
		wg.Go(func() {
			for f(w) {
				continue
			}
		})
	}
	wg.Wait()
}

func (l *load) driver(keys int) {
	ctx := context.Background()
	d := open(l, l.server.URL(), "bench")
	defer func() { _ = d.Close(ctx) }()
	n := max(l.N/loadBatch, 1) * loadBatch
	var left atomic.Int64
	left.Store(int64(n / loadBatch))
	l.phase("publish", n, func() {
		workers(loadWorkers, func(w int) bool {
			turn := left.Add(-1)
			if turn < 0 {
				return false
			}
			ms := make([]*driver.Message, loadBatch)
			for i := range ms {
				ms[i] = &driver.Message{ID: uuid7.New(time.Now()), Topic: "load", Body: l.bodies[(int(turn)+i)%len(l.bodies)]}
				if keys > 0 {
					ms[i].Key = "key" + strconv.Itoa((int(turn)*loadBatch+i)%keys)
				}
			}
			if _, err := d.Publish(ctx, ms, driver.PublishOptions{}); err != nil {
				l.Error(err)
			}
			return true
		})
	})
	l.drain(d, n)
}

func (l *load) drain(d driver.Driver, n int) {
	ctx, done := context.WithCancel(context.Background())
	var left atomic.Int64
	left.Store(int64(n))
	subs := make([]driver.Subscription, loadWorkers)
	for w := range subs {
		s, err := d.Subscribe(ctx, driver.SubscribeOptions{Topic: "load", Instance: fmt.Sprint(w), MaxRun: 100})
		if err != nil {
			l.Fatal(err)
		}
		subs[w] = s
	}
	l.phase("drain", n, func() {
		workers(loadWorkers, func(w int) bool {
			ds, err := subs[w].Receive(ctx, loadBatch)
			if err != nil {
				return false
			}
			ss := make([]driver.Settlement, len(ds))
			for i, x := range ds {
				ss[i].Delivery = x
			}
			for _, err := range subs[w].Settle(context.Background(), ss) {
				if err != nil {
					l.Error(err)
				}
			}
			if left.Add(-int64(len(ds))) <= 0 {
				done()
			}
			return true
		})
	})
	done()
}

// raw is the least that a stream of these messages costs: XADD in pipelines, XREADGROUP, XACK and XDEL of many.
func (l *load) raw() {
	ctx := context.Background()
	n := max(l.N/loadBatch, 1) * loadBatch
	var left atomic.Int64
	left.Store(int64(n / loadBatch))
	if err := l.client.XGroupCreateMkStream(ctx, "raw", "g", "0").Err(); err != nil {
		l.Fatal(err)
	}
	l.phase("publish", n, func() {
		workers(loadWorkers, func(int) bool {
			turn := left.Add(-1)
			if turn < 0 {
				return false
			}
			_, err := l.client.Pipelined(ctx, func(p goredis.Pipeliner) error {
				for i := range loadBatch {
					p.Do(ctx, "XADD", "raw", "*", "id", uuid7.New(time.Now()), "body", l.bodies[(int(turn)+i)%len(l.bodies)])
				}
				return nil
			})
			if err != nil {
				l.Error(err)
			}
			return true
		})
	})
	l.phase("drain", n, func() {
		workers(loadWorkers, func(int) bool {
			got, err := l.client.XReadGroup(ctx,
				&goredis.XReadGroupArgs{Group: "g", Consumer: "c", Streams: []string{"raw", ">"}, Count: loadBatch,
					Block: -1}).Result()
			if err != nil {
				return false
			}
			ids := make([]string, len(got[0].Messages))
			for i, m := range got[0].Messages {
				ids[i] = m.ID
			}
			_, err = l.client.Pipelined(ctx, func(p goredis.Pipeliner) error {
				p.XAck(ctx, "raw", "g", ids...)
				p.XDel(ctx, "raw", ids...)
				return nil
			})
			if err != nil {
				l.Error(err)
			}
			return true
		})
	})
}
