package redis_test

import (
	"context"
	"crypto/rand"
	"testing"

	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/guard/guardtest"
	"github.com/ferrymq/ferry/guard/redis"
	"github.com/ferrymq/ferry/internal/redistest"
)

func open(t testing.TB, url, prefix string) *redis.Store {
	t.Helper()
	s, err := redis.Open(context.Background(), redis.Options{URL: url, Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// harness runs the suite against a server, each store in a namespace of its own.
func harness(url string) guardtest.Harness {
	return guardtest.Harness{
		Leased: true,
		Open:   func(t testing.TB) guard.Store { return open(t, url, "t"+rand.Text()) },
		Peer:   func(t testing.TB, s guard.Store) guard.Store { return open(t, url, s.(*redis.Store).Prefix()) },
		Reopen: func(t testing.TB, s guard.Store) guard.Store {
			t.Helper()
			prefix := s.(*redis.Store).Prefix()
			if err := s.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			return open(t, url, prefix)
		},
	}
}

func TestStore(t *testing.T) {
	t.Parallel()
	guardtest.Run(t, harness(redistest.Shared(t).URL()))
}

func TestStoreOnCluster(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts six servers")
	}
	guardtest.Run(t, harness(redistest.Cluster(t, redistest.Options{Steady: true}).URL()))
}
