package redisstream_test

import (
	"context"
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

// BenchmarkLoad compares the driver with bare pipelined commands: see redistest.BenchLoad.
func BenchmarkLoad(b *testing.B) {
	redistest.BenchLoad(b, func(l *redistest.Load) driver.Driver { return open(l, l.Server.URL(), "bench") }, raw)
}

// raw is the least that a stream of these messages costs: XADD in pipelines, XREADGROUP, XACK and XDEL of many.
func raw(l *redistest.Load, n int) {
	ctx := context.Background()
	if err := l.Client.XGroupCreateMkStream(ctx, "raw", "g", "0").Err(); err != nil {
		l.Fatal(err)
	}
	l.Phase("publish", n, func() {
		l.Publish(func(first int) error {
			_, err := l.Client.Pipelined(ctx, func(p goredis.Pipeliner) error {
				for i := range redistest.LoadBatch {
					p.Do(ctx, "XADD", "raw", "*", "id", uuid7.New(time.Now()), "body", l.Body(first+i))
				}
				return nil
			})
			return err
		})
	})
	l.Phase("drain", n, func() {
		redistest.Workers(redistest.LoadWorkers, func(int) bool {
			got, err := l.Client.XReadGroup(ctx, &goredis.XReadGroupArgs{Group: "g", Consumer: "c",
				Streams: []string{"raw", ">"}, Count: redistest.LoadBatch, Block: -1}).Result()
			if err != nil {
				return false
			}
			ids := make([]string, len(got[0].Messages))
			for i, m := range got[0].Messages {
				ids[i] = m.ID
			}
			_, err = l.Client.Pipelined(ctx, func(p goredis.Pipeliner) error {
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
