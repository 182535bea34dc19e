package redis_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redistest"
)

// Nothing that was acknowledged at level replicated(1) is lost when the primary is killed while a consumer works, and
// producer and consumer go on by themselves. The producer waits for each answer, so no publish is under way at the
// kill.
func TestFailOverLosesNothing(t *testing.T) {
	t.Run("sentinel", func(t *testing.T) {
		t.Parallel()
		set := redistest.Sentinel(t, redistest.Options{})
		failOver(t, set.URL(), namespace(), func(string) error {
			primary, err := set.Primary()
			if err == nil {
				primary.Kill()
			}
			return err
		})
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		set := redistest.Cluster(t, redistest.Options{})
		failOver(t, set.URL(), namespace(), func(key string) error {
			primary, err := set.PrimaryOf(key)
			if err == nil {
				primary.Kill()
			}
			return err
		})
	})
}

func failOver(t *testing.T, url, prefix string, kill func(key string) error) {
	d := open(t, url, prefix)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	s := subscribe(t, d, "jobs")
	var mu sync.Mutex
	delivered := map[string]bool{}
	consumed := make(chan struct{})
	stop, stopped := context.WithCancel(ctx)
	go func() {
		defer close(consumed)
		for stop.Err() == nil {
			ds, err := s.Receive(stop, 50)
			if err != nil {
				time.Sleep(20 * time.Millisecond) // the back-off of a worker
				continue
			}
			mu.Lock()
			for _, x := range ds {
				delivered[x.ID] = true
				s.Settle(ctx, []driver.Settlement{{Delivery: x}})
			}
			mu.Unlock()
		}
	}()
	var accepted []string
	refused := 0
	for i := 0; i < 600 && ctx.Err() == nil; i++ {
		if i == 200 {
			if err := kill("{" + prefix + ":jobs:0}:topic"); err != nil {
				t.Fatal(err)
			}
		}
		m := &driver.Message{ID: fmt.Sprint("m", i), OwnID: true, Topic: "jobs", Key: fmt.Sprint(i % 5)}
		level := driver.Replicated(1)
		if i >= 200 {
			level = 0 // the replica has become the primary, and has none
		}
		for ctx.Err() == nil {
			_, err := d.Publish(ctx, []*driver.Message{m}, driver.PublishOptions{Level: level})
			if err == nil {
				accepted = append(accepted, m.ID)
				break
			}
			refused++
			time.Sleep(20 * time.Millisecond)
		}
	}
	missing := func() (ids []string) {
		mu.Lock()
		defer mu.Unlock()
		for _, id := range accepted {
			if !delivered[id] {
				ids = append(ids, id)
			}
		}
		return ids
	}
	for len(missing()) > 0 && ctx.Err() == nil {
		time.Sleep(50 * time.Millisecond)
	}
	stopped()
	<-consumed
	if lost := missing(); len(lost) > 0 || len(accepted) != 600 {
		t.Errorf("%d accepted, %d lost: %v", len(accepted), len(lost), lost[:min(len(lost), 10)])
	}
	t.Logf("%d accepted, %d refused meanwhile", len(accepted), refused)
	closeCtx, end := context.WithTimeout(context.Background(), time.Minute)
	defer end()
	if err := d.Close(closeCtx); err != nil {
		t.Errorf("Close: %v", err)
	}
}
