package redis_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver/redis"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/worker"
)

// A server that is frozen again and again, each time for two leases, kills no message of a healthy consumer: neither
// what waits in it nor what its handlers run.
func TestFreezesKillNothing(t *testing.T) {
	t.Parallel()
	const messages, freezes, lease = 3000, 8, time.Second
	server := redistest.Single(t, redistest.Options{})
	b, err := redis.Open(t.Context(), redis.Options{URL: server.URL(), Prefix: namespace()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close(context.Background()) }()
	for i := range messages {
		if _, err := ferry.Publish(t.Context(), b, "jobs", fmt.Append(nil, i), ferry.Key(fmt.Sprint("k", i%64))); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	handled, finished := map[string]bool{}, make(chan struct{})
	w := worker.New(b, worker.Options{Concurrency: 16, Lease: lease, StopTimeout: time.Second})
	worker.HandleRaw(w, "jobs", func(ctx context.Context, d *ferry.Delivery) error {
		work := 5 * time.Millisecond
		if n := len(d.Body); n > 2 && string(d.Body[n-2:]) == "77" {
			work = 3 * lease / 2 // it loses its lease to each freeze that it meets
		}
		select {
		case <-time.After(work):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		mu.Lock()
		defer mu.Unlock()
		if handled[string(d.Body)] = true; len(handled) == messages {
			close(finished)
		}
		return nil
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	for range freezes {
		time.Sleep(lease / 2) // the consumer takes what it can; the outages are what is tested
		if err := server.Stop(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2*lease + lease/4)
		if err := server.Continue(); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-finished:
	case <-time.After(2 * time.Minute):
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
	st, err := b.Driver().Stats(context.Background(), "jobs")
	if err != nil {
		t.Fatal(err)
	}
	g := st.Groups[0]
	t.Logf("%d handled, %d dead, %d lost leases", len(handled), g.Dead, g.Redelivered)
	if g.Dead > 0 || len(handled) != messages {
		t.Errorf("%d of %d handled, %d dead after %d freezes of two leases; want all and none", len(handled),
			messages, g.Dead, freezes)
	}
}
