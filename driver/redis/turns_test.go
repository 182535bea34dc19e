package redis_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/redis"
	"github.com/ferrymq/ferry/internal/redistest"
)

// Claims wait for each other, and what keeps leases does not wait for them, however many groups claim.
func TestRenewalsDoNotWaitForClaims(t *testing.T) {
	t.Parallel()
	const lease, groups, connections = 30 * time.Second, 12, 4
	slow := redistest.NewWithheld()
	client := goredis.NewClient(&goredis.Options{Addr: redistest.Shared(t).Addr(), Dialer: slow.Dial,
		PoolSize: connections, PipelinePoolSize: -1, ReadTimeout: -1})
	t.Cleanup(func() { _ = client.Close() })
	d, err := redis.New(t.Context(), redis.Options{Client: client, Prefix: namespace()})
	if err != nil {
		t.Fatal(err)
	}
	closing(t, d)
	subs := make([]driver.Subscription, groups)
	for i := range subs {
		if subs[i], err = d.Subscribe(t.Context(), driver.SubscribeOptions{Topic: "jobs", Group: fmt.Sprint("g", i),
			Instance: "a", Lease: lease}); err != nil {
			t.Fatal(err)
		}
	}
	publish(t, d, "jobs", "a")
	held := take(t, subs[0], 1)
	slow.Hold(d.ClaimWord())
	var claiming sync.WaitGroup
	t.Cleanup(claiming.Wait)
	t.Cleanup(slow.Release)
	for _, s := range subs[1:] {
		claiming.Go(func() { _, _ = s.Receive(context.Background(), 1) }) // there is one for each
	}
	for range connections / 2 {
		<-slow.Stuck()
	}
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), lease/6)
		err := subs[0].Extend(ctx, held)[0]
		if cancel(); err != nil {
			t.Fatalf("a lease is not extended while claims wait: %v", err)
		}
	}
	if n := slow.Waiting(); n > connections/2 {
		t.Errorf("claims have %d of %d connections", n, connections)
	}
}
