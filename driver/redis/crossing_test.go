package redis_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/redis"
	"github.com/ferrymq/ferry/internal/redistest"
)

// What is said about a delivery while an extension of it is under way finds it, although the extension has split its
// lease and nobody has read the answer yet.
func TestCallsCrossAnExtend(t *testing.T) {
	t.Parallel()
	to := func(topic string) []*driver.Message { return []*driver.Message{{ID: "next", Topic: topic}} }
	for name, call := range map[string]func(context.Context, driver.Subscription, *driver.Delivery) error{
		"ack":     settling(driver.Settlement{Outcome: driver.Ack}),
		"retry":   settling(driver.Settlement{Outcome: driver.Retry}),
		"dead":    settling(driver.Settlement{Outcome: driver.Dead}),
		"release": settling(driver.Settlement{Outcome: driver.Release}),
		"emit":    settling(driver.Settlement{Outcome: driver.Ack, Emit: to("jobs")}),
		"forward": settling(driver.Settlement{Outcome: driver.Ack, Emit: to("others")}),
		"extend": func(ctx context.Context, s driver.Subscription, d *driver.Delivery) error {
			return s.Extend(ctx, []*driver.Delivery{d})[0]
		},
		"close": func(ctx context.Context, s driver.Subscription, _ *driver.Delivery) error { return s.Close(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newCrossing(t)
			extended := x.extend(x.held[:2])
			if err := call(t.Context(), x.s, x.held[0]); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if name == "close" {
				if st, err := x.d.Stats(t.Context(), "jobs"); err != nil || st.Groups[0].Inflight != 0 {
					t.Errorf("Stats %+v, %v; want nothing in flight", st, err)
				}
			}
			close(x.read)
			<-extended
			report, err := x.d.Audit(t.Context(), "jobs", false)
			if err != nil || len(report.Problems) > 0 || report.Stats.Groups[0].Redelivered > 0 {
				t.Errorf("audit: %+v, %v", report, err)
			}
		})
	}
}

// settling makes a call of a settlement.
func settling(x driver.Settlement) func(context.Context, driver.Subscription, *driver.Delivery) error {
	return func(ctx context.Context, s driver.Subscription, d *driver.Delivery) error {
		x.Delivery = d
		return s.Settle(ctx, []driver.Settlement{x})[0]
	}
}

// crossing is a subscription that holds three messages of one key, and whose next extension is not answered at once.
type crossing struct {
	d     *redis.Driver
	s     driver.Subscription
	held  []*driver.Delivery
	armed atomic.Bool
	done  chan struct{} // closed when the server has carried the extension out
	read  chan struct{} // closed when its answer may be read
}

// extendWords is how many words the extension of two deliveries has: the command, the keys of a topic and a group, the
// arguments.
const extendWords = 3 + 19 + 21 + 3 + 2*2

func newCrossing(t *testing.T) *crossing {
	x := &crossing{done: make(chan struct{}), read: make(chan struct{})}
	x.d = openWith(t, redistest.Shared(t).Addr(), namespace(),
		hook{process: func(ctx context.Context, cmd goredis.Cmder, next goredis.ProcessHook) error {
			err := next(ctx, cmd)
			if isScript(cmd) && len(cmd.Args()) == extendWords && err == nil && x.armed.CompareAndSwap(true, false) {
				close(x.done)
				<-x.read
			}
			return err
		}})
	closing(t, x.d)
	var err error
	if x.s, err = x.d.Subscribe(t.Context(),
		driver.SubscribeOptions{Topic: "jobs", Instance: "tester", Lease: time.Minute, MaxRun: 3}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b", "c"} {
		if _, err := x.d.Publish(t.Context(), []*driver.Message{{ID: id, Topic: "jobs", Key: "k"}},
			driver.PublishOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	x.held = take(t, x.s, 3)
	return x
}

// extend begins to extend, and returns when the server has done it.
func (x *crossing) extend(ds []*driver.Delivery) (ended <-chan struct{}) {
	over := make(chan struct{})
	x.armed.Store(true)
	go func() {
		defer close(over)
		x.s.Extend(context.Background(), ds)
	}()
	<-x.done
	return over
}

// A claim of more messages than a script settles stays one lease when all of it is extended.
func TestExtendDoesNotSplitALargeClaim(t *testing.T) {
	t.Parallel()
	prefix := namespace()
	d := open(t, redistest.Shared(t).URL(), prefix)
	closing(t, d)
	s := subscribe(t, d, "jobs")
	bodies := make([]string, 250)
	publish(t, d, "jobs", bodies...)
	publish(t, d, "jobs", bodies...)
	first, second := take(t, s, 50), take(t, s, 450)
	var mixed []*driver.Delivery // as a worker that holds both may name them
	for i := range second {
		mixed = append(mixed, second[i])
		if i < len(first) {
			mixed = append(mixed, first[i])
		}
	}
	for _, err := range s.Extend(t.Context(), mixed) {
		if err != nil {
			t.Fatal(err)
		}
	}
	c := goredis.NewClient(&goredis.Options{Addr: redistest.Shared(t).Addr()})
	defer func() { _ = c.Close() }()
	if n, err := c.HLen(t.Context(), "{"+prefix+":jobs:0}:g:default:lease").Result(); err != nil || n != 2 {
		t.Errorf("%d leases of two claims, %v", n, err)
	}
	ack(t, s, mixed)
}
