package redisstream_test

import (
	"context"
	"crypto/rand"
	"fmt"
	mrand "math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redistest"
)

// churn is a topic whose consumers come and go while messages of some keys are handled in order.
type churn struct {
	*testing.T
	url, prefix string
	seed        uint64

	mu   sync.Mutex
	next map[string]int // of each key
	done int
}

const (
	churnConsumers = 20
	churnKeys      = 40
	churnEach      = 30
)

// Consumers join and leave at random: every message is handled, and those of a key in order.
func TestOrderWhileConsumersComeAndGo(t *testing.T) {
	t.Parallel()
	c := &churn{T: t, url: redistest.Shared(t).URL(), prefix: "c" + rand.Text(), seed: mrand.Uint64(),
		next: map[string]int{}}
	t.Logf("seed %d", c.seed)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	for i := range churnConsumers {
		wg.Go(func() { c.consumer(ctx, i) })
	}
	d := open(t, c.url, c.prefix)
	for n := range churnEach {
		var ms []*driver.Message
		for k := range churnKeys {
			ms = append(ms, &driver.Message{ID: fmt.Sprintf("%d-%d", k, n), Topic: "jobs", Key: strconv.Itoa(k),
				Body: strconv.AppendInt(nil, int64(n), 10)})
		}
		if _, err := d.Publish(ctx, ms, driver.PublishOptions{}); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
	st, err := d.Stats(context.Background(), "jobs")
	if err != nil {
		t.Fatal(err)
	}
	if g := st.Groups[0]; c.done != churnKeys*churnEach || g.Acked != churnKeys*churnEach ||
		g.Redelivered != 0 || st.Messages != 0 {
		t.Errorf("%d handled of %d: %+v", c.done, churnKeys*churnEach, st)
	}
	if err := d.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// consumer joins, works for a while, and leaves, with a driver of its own, until all is done.
func (c *churn) consumer(ctx context.Context, i int) {
	random := mrand.New(mrand.NewPCG(c.seed, uint64(i)))
	d := open(c, c.url, c.prefix)
	defer func() {
		if err := d.Close(context.Background()); err != nil {
			c.Error(err)
		}
	}()
	for !c.finished() && ctx.Err() == nil {
		s, err := d.Subscribe(ctx, driver.SubscribeOptions{Topic: "jobs", Instance: strconv.Itoa(i), Lease: 30 * time.Second})
		if err != nil {
			c.Error(err)
			return
		}
		stay, cancel := context.WithTimeout(ctx, time.Duration(50+random.IntN(400))*time.Millisecond)
		for !c.finished() {
			ds, err := s.Receive(stay, 1+random.IntN(30))
			if err != nil {
				break
			}
			c.handle(ctx, s, ds)
		}
		cancel()
		if err := s.Close(ctx); err != nil {
			c.Error(err)
		}
	}
}

func (c *churn) finished() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done >= churnKeys*churnEach
}

// handle checks that each message is the next of its key, and acknowledges it.
func (c *churn) handle(ctx context.Context, s driver.Subscription, ds []*driver.Delivery) {
	ss := make([]driver.Settlement, len(ds))
	c.mu.Lock()
	for i, d := range ds {
		if want := strconv.Itoa(c.next[d.Key]); string(d.Body) != want {
			c.Errorf("key %s: message %s came while %s was next", d.Key, d.Body, want)
		}
		c.next[d.Key]++
		c.done++
		ss[i] = driver.Settlement{Delivery: d}
	}
	c.mu.Unlock()
	for _, err := range s.Settle(ctx, ss) {
		if err != nil {
			c.Error(err)
		}
	}
}
