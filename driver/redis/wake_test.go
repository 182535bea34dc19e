package redis_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/redis"
	"github.com/ferrymq/ferry/internal/redistest"
)

// Without the fallback scan nothing is left lying: whoever waits is told, or taken along, whatever else happens at the
// same time.
func TestNothingWaitsForTheFallback(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]driver.SubscribeOptions{
		"defaults": {}, "little room": {MaxInflight: 3}, "runs": {MaxRun: 4},
		"little room for runs": {MaxInflight: 3, MaxRun: 4},
	} {
		for _, shards := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s, %d shards", name, shards), func(t *testing.T) {
				t.Parallel()
				newRace(t, o, shards).run()
			})
		}
	}
}

// race is one topic with producers and consumers in two processes.
type race struct {
	*testing.T
	drivers [2]*redis.Driver
	o       driver.SubscribeOptions
	handled atomic.Int64
}

const raced = 600 // messages

func newRace(t *testing.T, o driver.SubscribeOptions, shards int) *race {
	r := &race{T: t, o: o}
	r.o.Topic, r.o.Lease = "jobs", time.Minute
	prefix := namespace()
	for i := range r.drivers {
		d, err := redis.New(t.Context(),
			redis.Options{URL: redistest.Shared(t).URL(), Prefix: prefix, Fallback: time.Hour, Shards: shards})
		if err != nil {
			t.Fatal(err)
		}
		closing(t, d)
		r.drivers[i] = d
	}
	return r
}

func (r *race) run() {
	ctx, done := context.WithTimeout(r.Context(), 3*time.Minute)
	defer done()
	var all sync.WaitGroup
	for i, d := range r.drivers {
		o := r.o
		o.Instance = fmt.Sprint("consumer ", i)
		s, err := d.Subscribe(ctx, o)
		if err != nil {
			r.Fatal(err)
		}
		for range 2 {
			all.Go(func() { r.consume(ctx, done, s) })
		}
	}
	for i, d := range r.drivers {
		all.Go(func() { r.produce(ctx, d, i) })
	}
	all.Wait()
	if n := r.handled.Load(); n != raced {
		r.Errorf("%d of %d messages were handled", n, raced)
	}
}

// produce publishes a few at a time, so that consumers find nothing again and again.
func (r *race) produce(ctx context.Context, d *redis.Driver, number int) {
	for left := raced / len(r.drivers); left > 0; {
		ms := make([]*driver.Message, min(left, 1+rand.IntN(5)))
		for i := range ms {
			left--
			ms[i] = &driver.Message{ID: fmt.Sprint(number, "-", left), Topic: "jobs"}
			if rand.IntN(2) == 0 {
				ms[i].Key = fmt.Sprint("key ", rand.IntN(3))
			}
		}
		if _, err := d.Publish(ctx, ms, driver.PublishOptions{}); err != nil {
			r.Errorf("publish: %v", err)
			return
		}
	}
}

// consume settles what it gets in portions, now and then by giving it back.
func (r *race) consume(ctx context.Context, done func(), s driver.Subscription) {
	for {
		ds, err := s.Receive(ctx, 1+rand.IntN(10))
		if err != nil {
			return
		}
		for len(ds) > 0 {
			ss := make([]driver.Settlement, 1+rand.IntN(len(ds)))
			for i := range ss {
				ss[i].Delivery = ds[i]
				if rand.IntN(20) == 0 {
					ss[i].Outcome = driver.Release
				}
			}
			for i, err := range s.Settle(context.Background(), ss) {
				if err == nil && ss[i].Outcome == driver.Ack && r.handled.Add(1) == raced {
					done()
				}
			}
			ds = ds[len(ss):]
		}
	}
}
