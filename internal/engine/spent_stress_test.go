package engine

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ferrymq/ferry/driver"
)

// TestDeliveriesAreNeverMixedUp moves messages through two groups while others purge, browse, and take subscriptions
// away from those that are just receiving. Every delivery must be what was published under its id, whatever became of
// the memory of others.
func TestDeliveriesAreNeverMixedUp(t *testing.T) {
	t.Parallel()
	const publishers, each = 4, 3000
	e := open(t)
	ctx, stop := context.WithCancel(context.Background())
	if err := e.EnsureGroup(ctx, "t", "second", driver.GroupOptions{}); err != nil {
		t.Fatal(err)
	}
	var publishing, rest sync.WaitGroup
	for p := range publishers {
		publishing.Go(func() { publishMarked(t, e, p, each) })
	}
	var seen atomic.Int64
	for _, group := range []string{"default", "default", "second", "second"} {
		rest.Go(func() { receiveMarked(ctx, t, e, group, &seen) })
	}
	rest.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			if i%16 == 0 {
				_, _ = e.Purge(ctx, "t", []string{"", "second"}[i/16%2])
			}
			page, _ := e.Browse(ctx, driver.Query{Topic: "t", Group: "default", State: driver.StateInflight})
			for _, en := range page.Entries {
				checkMarked(t, en.Message)
			}
		}
	})
	publishing.Wait()
	// on a busy machine subscriptions may have been closed before anything was there
	for p := publishers; seen.Load() == 0; p++ {
		publishMarked(t, e, p, each)
	}
	stop()
	rest.Wait()
}

func publishMarked(t *testing.T, e *Engine, publisher, n int) {
	for i := 0; i < n; {
		var ms []*driver.Message
		for range i%5 + 1 {
			id := fmt.Sprintf("%d-%d", publisher, i)
			ms = append(ms, &driver.Message{Topic: "t", ID: id, Key: []string{"", "k" + id}[i%2],
				Body: []byte(strings.Repeat(id, i%9)), ContentType: "type/" + id})
			i++
		}
		publish(t, e, ms...)
	}
}

func checkMarked(t *testing.T, m *driver.Message) {
	var publisher, i int
	if _, err := fmt.Sscanf(m.ID, "%d-%d", &publisher, &i); err != nil {
		t.Errorf("a message has the id %q", m.ID)
		return
	}
	if string(m.Body) != strings.Repeat(m.ID, i%9) || m.Key != []string{"", "k" + m.ID}[i%2] ||
		m.ContentType != "type/"+m.ID {
		t.Errorf("message %s has body %q, key %q and type %q", m.ID, m.Body, m.Key, m.ContentType)
	}
}

// receiveMarked subscribes again and again, and settles only some of what it gets.
func receiveMarked(ctx context.Context, t *testing.T, e *Engine, group string, seen *atomic.Int64) {
	for round := 0; ctx.Err() == nil; round++ {
		s, err := e.Subscribe(ctx, driver.SubscribeOptions{Topic: "t", Group: group, Instance: "i", MaxRun: 3})
		if err != nil {
			return
		}
		var other sync.WaitGroup
		other.Go(func() { // takes back what the calls below are just copying
			_ = s.Close(context.Background())
		})
		for i := 0; ; i++ {
			ds, err := s.Receive(ctx, 20)
			if err != nil {
				break
			}
			var ss []driver.Settlement
			for _, d := range ds {
				seen.Add(1)
				checkMarked(t, d.Message)
				clear(d.Body) // it is ours
				ss = append(ss, driver.Settlement{Delivery: d, Outcome: driver.Outcome((round + i) % 5)})
			}
			s.Settle(ctx, ss[:len(ss)*2/3])
		}
		other.Wait()
	}
}
