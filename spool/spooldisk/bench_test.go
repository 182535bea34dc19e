//go:build unix

package spooldisk_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/disk"
	"github.com/ferrymq/ferry/driver/redis"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/spool"
	"github.com/ferrymq/ferry/spool/spooldisk"
)

const benchBody = 1 << 10

// publishAll publishes n messages by 64 callers, each with a key of its own, and returns the rate.
func publishAll(b *testing.B, d driver.Driver, n int) float64 {
	b.Helper()
	broker, err := ferry.New(d, ferry.Options{})
	if err != nil {
		b.Fatal(err)
	}
	body := make([]byte, benchBody)
	var next atomic.Int64
	var callers sync.WaitGroup
	start := time.Now()
	for c := range 64 {
		callers.Go(func() {
			for next.Add(1) <= int64(n) {
				if _, err := broker.Publish(context.Background(),
					&ferry.Message{Topic: topic, Key: fmt.Sprint("k", c), Body: body}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	callers.Wait()
	return float64(n) / time.Since(start).Seconds()
}

// BenchmarkSpooled is publishing while the broker is away: 1 KB, 64 callers, synced.
func BenchmarkSpooled(b *testing.B) {
	s := open(b, newGone(b), b.TempDir())
	defer shut(b, s)
	publishAll(b, s, 2000)
	b.ResetTimer()
	used := cpuTime()
	b.ReportMetric(publishAll(b, s, b.N), "msg/s")
	b.ReportMetric(float64((cpuTime()-used).Microseconds())/float64(b.N), "cpu-µs/msg")
}

// cpuTime is what this process has used: on a busy machine it tells more than a rate.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// away is any broker that can be.
type away struct {
	driver.Driver
	on atomic.Bool
}

func (a *away) Publish(ctx context.Context, msgs []*driver.Message, o driver.PublishOptions) ([]driver.Receipt, error) {
	if !a.on.Load() {
		return a.Driver.Publish(ctx, msgs, o)
	}
	rs := make([]driver.Receipt, len(msgs))
	for i := range rs {
		rs[i].Err = driver.NewError(driver.ErrNotApplied, "away", "", nil)
	}
	return rs, rs[0].Err
}

// BenchmarkDrain is from the first message that the broker takes to the last: 1 KB, of 64 keys.
func BenchmarkDrain(b *testing.B) {
	for _, of := range []string{"memory", "redis"} {
		b.Run(of, func(b *testing.B) {
			a := &away{Driver: newGone(b).Driver}
			if of == "redis" {
				a.Driver = newRedis(b)
			}
			a.on.Store(true)
			s, err := spooldisk.Open(context.Background(), a,
				spooldisk.Options{Root: b.TempDir(), Spool: spool.Options{Every: time.Millisecond}, Disk: disk.Options{Reserve: 1}})
			if err != nil {
				b.Fatal(err)
			}
			defer shut(b, s)
			publishAll(b, s, b.N)
			b.ResetTimer()
			start, used := time.Now(), cpuTime()
			a.on.Store(false)
			for s.SpoolStats().Messages > 0 {
				time.Sleep(time.Millisecond)
			}
			b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "msg/s")
			b.ReportMetric(float64((cpuTime()-used).Microseconds())/float64(b.N), "cpu-µs/msg")
		})
	}
}

func newRedis(b *testing.B) driver.Driver {
	b.Helper()
	server := redistest.Single(b, redistest.Options{AOF: "everysec"})
	d, err := redis.New(context.Background(), redis.Options{URL: server.URL()})
	if err != nil {
		b.Fatal(err)
	}
	return d
}

// BenchmarkHealthy compares a broker that answers with and without a spool: in turns, so that a busy machine harms
// both.
func BenchmarkHealthy(b *testing.B) {
	bare, below := newRedis(b), newRedis(b)
	defer shut(b, bare)
	s := open(b, below, b.TempDir())
	defer shut(b, s)
	const turns = 10
	var with, without, cpuWith, cpuWithout float64
	for range turns {
		used := cpuTime()
		without += publishAll(b, bare, max(b.N/turns, 1)) / turns
		cpuWithout += float64(cpuTime() - used)
		used = cpuTime()
		with += publishAll(b, s, max(b.N/turns, 1)) / turns
		cpuWith += float64(cpuTime() - used)
	}
	b.ReportMetric(100*(cpuWith/cpuWithout-1), "%more-cpu")
	b.ReportMetric(without, "bare-msg/s")
	b.ReportMetric(with, "msg/s")
	b.ReportMetric(100*(1-with/without), "%slower")
}
