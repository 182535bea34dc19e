package redisstream_test

import (
	"context"
	"fmt"
	"os"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/uuid7"
	"github.com/ferrymq/ferry/worker"
)

func BenchmarkZZ(b *testing.B) {
	for _, workerToo := range []bool{false, true} {
		b.Run(fmt.Sprint("worker=", workerToo), func(b *testing.B) {
			l := newLoad(b)
			ctx := context.Background()
			d := open(l, l.server.URL(), "bench")
			defer func() { _ = d.Close(ctx) }()
			const n = 100_000
			for i := 0; i < n; i += 100 {
				ms := make([]*driver.Message, 100)
				for j := range ms {
					ms[j] = &driver.Message{ID: uuid7.New(time.Now()), Topic: "load", Body: l.bodies[j%64]}
				}
				if _, err := d.Publish(ctx, ms, driver.PublishOptions{}); err != nil {
					b.Fatal(err)
				}
			}
			l.client.ConfigResetStat(ctx)
			f, _ := os.Create(fmt.Sprintf("/tmp/rs8/cpu-%v.prof", workerToo))
			pprof.StartCPUProfile(f)
			b.ResetTimer()
			if workerToo {
				br, _ := ferry.New(d, ferry.Options{})
				w := worker.New(br, worker.Options{})
				done := make(chan struct{})
				left := make(chan struct{}, n)
				worker.HandleRaw(w, "load", func(context.Context, *ferry.Delivery) error { left <- struct{}{}; return nil })
				c2, cancel := context.WithCancel(ctx)
				go func() { _ = w.Run(c2); close(done) }()
				l.phase("drain", n, func() {
					for len(left) < n {
						time.Sleep(time.Millisecond)
					}
				})
				cancel()
				<-done
			} else {
				l.drain(d, n)
			}
			pprof.StopCPUProfile()
			f.Close()
			st, _ := l.client.Info(ctx, "commandstats").Result()
			for line := range strings.Lines(st) {
				fmt.Print(line)
			}
		})
	}
}
