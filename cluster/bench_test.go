package cluster_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/open"
)

// BenchmarkMembers is what 200 members, each with connections of its own as in a process of its own, cost a Redis
// server while nothing happens but their beats, in percent of a core; and what their connections cost it without them.
// One round takes 30 s.
func BenchmarkMembers(b *testing.B) {
	const members, round = 200, 30 * time.Second
	for _, joined := range []bool{false, true} {
		b.Run(fmt.Sprintf("joined=%t", joined), func(b *testing.B) {
			server := redistest.Single(b, redistest.Options{})
			ctx, cancel := context.WithCancel(b.Context())
			var all sync.WaitGroup
			for i := range members {
				broker, err := open.URL(ctx, server.URL()+"?pool=2")
				if err != nil {
					b.Fatal(err)
				}
				defer func() { _ = broker.Close(context.Background()) }()
				if !joined {
					continue
				}
				m, err := cluster.Join(broker, cluster.Options{Name: fmt.Sprint("member", i)})
				if err != nil {
					b.Fatal(err)
				}
				all.Go(func() { _ = m.Run(ctx) })
				time.Sleep(cluster.DefaultBeat / members) // as processes do that did not start together
			}
			before := used(b, server)
			b.ResetTimer()
			for range b.N {
				time.Sleep(round)
			}
			b.StopTimer()
			b.ReportMetric(100*(used(b, server)-before)/(round*time.Duration(b.N)).Seconds(), "%core")
			cancel()
			all.Wait()
		})
	}
}

// used is the processor time that a server has used, in seconds.
func used(b *testing.B, s *redistest.Server) (sum float64) {
	c := goredis.NewClient(&goredis.Options{Addr: s.Addr()})
	defer func() { _ = c.Close() }()
	for line := range strings.FieldsSeq(c.Info(b.Context(), "cpu").Val()) {
		if name, v, _ := strings.Cut(line, ":"); name == "used_cpu_sys" || name == "used_cpu_user" {
			n, _ := strconv.ParseFloat(v, 64)
			sum += n
		}
	}
	return sum
}
