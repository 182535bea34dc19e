package redis_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"sync"
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

// phase measures one part of a run.
func (l *load) phase(name string, n int, f func()) {
	before, start := l.cpu(), time.Now()
	f()
	l.ReportMetric(float64(n)/time.Since(start).Seconds(), name+"/s")
	l.ReportMetric((l.cpu()-before)/float64(n), name+"-us")
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
	d := open(l, l.server.URL(), "bench")
	defer func() { _ = d.Close(context.Background()) }()
	n := max(l.N/loadBatch, 1) * loadBatch
	l.phase("publish", n, func() { l.fill(d, n, keys) })
	l.drain(d, n)
}

// fill publishes n messages with so many keys.
func (l *load) fill(d driver.Driver, n, keys int) {
	var left atomic.Int64
	left.Store(int64(n / loadBatch))
	workers(loadWorkers, func(int) bool {
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
		if _, err := d.Publish(context.Background(), ms, driver.PublishOptions{}); err != nil {
			l.Error(err)
		}
		return true
	})
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

// raw is the least that a queue of these messages costs: a hash of bodies and a list of ids, several messages in one
// command.
func (l *load) raw() {
	ctx := context.Background()
	n := max(l.N/loadBatch, 1) * loadBatch
	var left atomic.Int64
	left.Store(int64(n / loadBatch))
	l.phase("publish", n, func() {
		workers(loadWorkers, func(int) bool {
			turn := left.Add(-1)
			if turn < 0 {
				return false
			}
			bodies, ids := make([]any, 0, 2*loadBatch), make([]any, 0, loadBatch)
			for i := range loadBatch {
				id := uuid7.New(time.Now())
				bodies, ids = append(bodies, id, l.bodies[(int(turn)+i)%len(l.bodies)]), append(ids, id)
			}
			_, err := l.client.Pipelined(ctx, func(p goredis.Pipeliner) error {
				p.HSet(ctx, "bodies", bodies...)
				p.RPush(ctx, "ids", ids...)
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
			ids, err := l.client.LPopCount(ctx, "ids", loadBatch).Result()
			if err != nil {
				return false
			}
			if err := l.client.HMGet(ctx, "bodies", ids...).Err(); err != nil {
				l.Error(err)
			}
			if err := l.client.HDel(ctx, "bodies", ids...).Err(); err != nil {
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
		b.Run(c.name, func(b *testing.B) { newLoad(b).handOver(c.keys, c.o) })
	}
}

func (l *load) handOver(keys int, o driver.SubscribeOptions) {
	ctx, done := context.WithCancel(context.Background())
	d := open(l, l.server.URL(), "bench")
	defer func() { _ = d.Close(context.Background()) }()
	n := max(l.N/loadBatch, 1) * loadBatch
	l.fill(d, n, keys)
	o.Topic, o.Instance = "load", "bench"
	s, err := d.Subscribe(ctx, o)
	if err != nil {
		l.Fatal(err)
	}
	before := l.scripts()
	l.phase("drain", n, func() {
		taken := make(chan []*driver.Delivery, 1)
		go func() {
			defer close(taken)
			for {
				ds, err := s.Receive(ctx, loadBatch)
				if err != nil {
					return
				}
				taken <- ds
			}
		}()
		left := n
		for ds := range taken {
			ss := make([]driver.Settlement, len(ds))
			for i, x := range ds {
				ss[i].Delivery = x
			}
			for _, err := range s.Settle(context.Background(), ss) {
				if err != nil {
					l.Error(err)
				}
			}
			if left -= len(ds); left == 0 {
				done()
			}
		}
	})
	done()
	l.ReportMetric((l.scripts()-before)/float64(n), "scripts/op")
}

// scripts returns how many the server has run.
func (l *load) scripts() (calls float64) {
	text, err := l.client.Info(context.Background(), "commandstats").Result()
	if err != nil {
		l.Fatal(err)
	}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, ":calls=")
		if strings.HasPrefix(name, "cmdstat_eval") {
			value, _, _ = strings.Cut(value, ",")
			n, _ := strconv.ParseFloat(value, 64)
			calls += n
		}
	}
	return calls
}

// BenchmarkCallers publishes one message at a time from some callers, through a broker, which gathers them. It reports
// how many messages a script carries, and the processor time of the server for each.
func BenchmarkCallers(b *testing.B) {
	for _, callers := range []int{1, 10, 50, 100, 256} {
		b.Run(strconv.Itoa(callers), func(b *testing.B) { newLoad(b).callers(callers) })
	}
}

func (l *load) callers(n int) {
	ctx := context.Background()
	broker, err := ferry.New(open(l, l.server.URL(), "bench"), ferry.Options{})
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
		m := &ferry.Message{Topic: "load", Body: l.bodies[int(i)%len(l.bodies)]}
		if _, err := broker.Publish(ctx, m); err != nil {
			l.Error(err)
		}
		return true
	}
	before, used := l.scripts(), clientTime()
	l.ReportAllocs()
	l.phase("publish", l.N, func() { workers(n, publish) })
	l.ReportMetric((clientTime()-used)/float64(l.N), "client-us")
	l.ReportMetric(float64(l.N)/(l.scripts()-before), "messages/script")
}

func clientTime() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e3
}
