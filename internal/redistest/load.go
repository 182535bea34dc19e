package redistest

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
	"github.com/ferrymq/ferry/internal/uuid7"
)

// How a Load moves messages: so many at once, by so many callers.
const (
	LoadBatch   = 100
	LoadWorkers = 4
)

// Load is one benchmark with a server of its own, and 1 KB random bodies.
type Load struct {
	*testing.B
	Server *Server
	Client *goredis.Client
	bodies [64][]byte
}

// NewLoad starts the server of a benchmark.
func NewLoad(b *testing.B) *Load {
	b.Helper()
	l := &Load{B: b, Server: Single(b, Options{})}
	l.Client = goredis.NewClient(&goredis.Options{Addr: l.Server.Addr()})
	b.Cleanup(func() { _ = l.Client.Close() })
	for i := range l.bodies {
		l.bodies[i] = make([]byte, 1024)
		_, _ = rand.Read(l.bodies[i])
	}
	return l
}

// BenchLoad compares a driver with bare pipelined commands, in batches over four connections. It reports messages per
// second, and the server's CPU time for each.
func BenchLoad(b *testing.B, open func(l *Load) driver.Driver, raw func(l *Load, n int)) {
	for _, c := range []struct {
		name string
		keys int
	}{{"plain", 0}, {"10k keys", 10_000}, {"one key", 1}} {
		b.Run(c.name, func(b *testing.B) {
			l := NewLoad(b)
			d := open(l)
			defer func() { _ = d.Close(context.Background()) }()
			l.Phase("publish", l.Messages(), func() { l.Fill(d, c.keys) })
			l.drain(d)
		})
	}
	b.Run("raw", func(b *testing.B) {
		l := NewLoad(b)
		raw(l, l.Messages())
	})
}

// Messages is how many there are: whole batches.
func (l *Load) Messages() int { return max(l.N/LoadBatch, 1) * LoadBatch }

// Body returns one of the bodies.
func (l *Load) Body(i int) []byte { return l.bodies[i%len(l.bodies)] }

// Phase measures one part of a run. With -v it tells what each command took of the server, in µs for each message.
func (l *Load) Phase(name string, n int, f func()) {
	l.Client.ConfigResetStat(context.Background())
	before, start := l.cpu(), time.Now()
	f()
	l.ReportMetric(float64(n)/time.Since(start).Seconds(), name+"/s")
	l.ReportMetric((l.cpu()-before)/float64(n), name+"-us")
	if testing.Verbose() {
		l.commands(name, n)
	}
}

// cpu returns the time the server's main thread has used, in microseconds.
func (l *Load) cpu() float64 {
	sum := 0.0
	for line := range strings.Lines(l.info("cpu")) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "used_cpu_sys_main_thread" || name == "used_cpu_user_main_thread" {
			s, _ := strconv.ParseFloat(value, 64)
			sum += s * 1e6
		}
	}
	return sum
}

func (l *Load) info(section string) string {
	l.Helper()
	text, err := l.Client.Info(context.Background(), section).Result()
	if err != nil {
		l.Fatal(err)
	}
	return text
}

// Commands are how often the server has run each command since the phase began, and how many microseconds that took.
func (l *Load) Commands(each func(command string, calls, usec int)) {
	for line := range strings.Lines(l.info("commandstats")) {
		var calls, usec int
		command, rest, _ := strings.Cut(line, ":")
		if _, err := fmt.Sscanf(rest, "calls=%d,usec=%d", &calls, &usec); err == nil {
			each(strings.TrimPrefix(command, "cmdstat_"), calls, usec)
		}
	}
}

// commands tells what each command took: those of scripts are part of what the scripts took.
func (l *Load) commands(phase string, n int) {
	l.Commands(func(command string, calls, usec int) {
		if usec*50 > n {
			l.Logf("%s %s: %d calls, %.2f us", phase, command, calls, float64(usec)/float64(n))
		}
	})
}

// Workers runs f in parallel until it returns false.
func Workers(n int, f func(worker int) bool) {
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

// Publish calls f for each batch, with the number of its first message.
func (l *Load) Publish(f func(first int) error) {
	var next atomic.Int64
	Workers(LoadWorkers, func(int) bool {
		first := int(next.Add(LoadBatch)) - LoadBatch
		if first >= l.Messages() {
			return false
		}
		if err := f(first); err != nil {
			l.Error(err)
		}
		return true
	})
}

// Fill publishes messages with so many keys to the topic "load".
func (l *Load) Fill(d driver.Driver, keys int) {
	l.Publish(func(first int) error {
		ms := make([]*driver.Message, LoadBatch)
		for i := range ms {
			ms[i] = &driver.Message{ID: uuid7.New(time.Now()), Topic: "load", Body: l.Body(first + i)}
			if keys > 0 {
				ms[i].Key = "key" + strconv.Itoa((first+i)%keys)
			}
		}
		_, err := d.Publish(context.Background(), ms, driver.PublishOptions{})
		return err
	})
}

func (l *Load) drain(d driver.Driver) {
	ctx, done := context.WithCancel(context.Background())
	defer done()
	subs := make([]driver.Subscription, LoadWorkers)
	for w := range subs {
		s, err := d.Subscribe(ctx, driver.SubscribeOptions{Topic: "load", Instance: strconv.Itoa(w), MaxRun: LoadBatch})
		if err != nil {
			l.Fatal(err)
		}
		subs[w] = s
	}
	var left atomic.Int64
	left.Store(int64(l.Messages()))
	l.Phase("drain", l.Messages(), func() {
		Workers(LoadWorkers, func(w int) bool {
			ds, err := subs[w].Receive(ctx, LoadBatch)
			if err != nil {
				return false
			}
			l.Ack(subs[w], ds)
			if left.Add(-int64(len(ds))) <= 0 {
				done()
			}
			return true
		})
	})
}

// Ack acknowledges what was received.
func (l *Load) Ack(s driver.Subscription, ds []*driver.Delivery) {
	ss := make([]driver.Settlement, len(ds))
	for i, x := range ds {
		ss[i].Delivery = x
	}
	for _, err := range s.Settle(context.Background(), ss) {
		if err != nil {
			l.Error(err)
		}
	}
}
