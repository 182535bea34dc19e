package guard_test

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/guard/guardtest"
	"github.com/ferrymq/ferry/internal/kafkatest"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/open"
)

// TestGuardsOnBrokers runs the suite of guards on every driver: one row for each.
func TestGuardsOnBrokers(t *testing.T) {
	t.Parallel()
	cluster := kafkatest.Single(t)
	for name, url := range map[string]func(t testing.TB) string{
		"memory": func(testing.TB) string { return "memory://" },
		"disk":   func(t testing.TB) string { return "disk://" + t.TempDir() },
		"redis":  func(t testing.TB) string { return redistest.Shared(t).URL() + "?prefix=t" + rand.Text() },
		"redisstream": func(t testing.TB) string {
			return strings.Replace(redistest.Shared(t).URL(), "redis:", "redisstream:", 1) + "?prefix=t" + rand.Text()
		},
		"kafka": func(testing.TB) string {
			return "kafka://" + strings.Join(cluster.Addrs(), ",") + "?partitions=2&internal_partitions=1&namespace=t" +
				rand.Text()[:10] + "."
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			guardtest.RunBroker(t, func(t testing.TB) *ferry.Broker {
				t.Helper()
				b, err := open.URL(context.Background(), url(t))
				if err != nil {
					t.Fatal(err)
				}
				return b
			})
		})
	}
}
