package wecom_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ferrymq/ferry/internal/kafkatest"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/wecom"
	"github.com/ferrymq/ferry/wecom/wecomtest"
)

// BenchmarkCallbacks sends 500 callbacks a second, whatever the answers take, while they are pulled. It reports how
// long answers took.
func BenchmarkCallbacks(b *testing.B) {
	server := redistest.Single(b, redistest.Options{AOF: "everysec"})
	for name, url := range map[string]string{
		"disk": "disk://" + b.TempDir(), "redis": server.URL() + "?prefix=bench",
		"redisstream": strings.Replace(server.URL(), "redis", "redisstream", 1) + "?prefix=bench",
		"kafka":       "kafka://" + kafkatest.Shared(b).Addrs()[0] + "/?partitions=4&internal_partitions=1",
	} {
		b.Run(name, func(b *testing.B) { benchmarkCallbacks(b, url) })
	}
}

func benchmarkCallbacks(b *testing.B, url string) {
	broker, err := open.URL(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	defer broker.Close(context.Background())
	vendor := wecomtest.Start(wecomtest.Options{})
	defer vendor.Close()
	p, err := wecom.New(broker, vendor.Config(), wecom.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	h := httptest.NewServer(p.Callback())
	defer h.Close()
	ctx, end := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = p.Run(ctx) })
	took := callbacks(b, vendor, h.URL)
	end()
	running.Wait()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}

// callbacks sends b.N callbacks, each at its time, and returns how long each took from then on.
func callbacks(b *testing.B, vendor *wecomtest.Server, url string) []time.Duration {
	took := make([]time.Duration, b.N)
	var sent sync.WaitGroup
	start := time.Now()
	for i := range b.N {
		due := start.Add(time.Duration(i) * time.Second / 500)
		time.Sleep(time.Until(due))
		sent.Go(func() {
			account := "kf" + string(rune('0'+i%8))
			vendor.Say(account, "ann", "hello")
			status, err := vendor.Callback(account).Send(b.Context(), url)
			if err != nil || status != http.StatusOK {
				b.Errorf("%d, %v", status, err)
			}
			took[i] = time.Since(due)
		})
	}
	sent.Wait()
	return took
}
