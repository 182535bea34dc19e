package redisstream_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
)

// dying is a hook of a client whose process dies when it has sent its acknowledgements: nothing else is sent any more.
type dying struct {
	quiet
	armed atomic.Bool
}

var errDead = errors.New("the process is dead")

func (d *dying) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		if d.armed.Load() && !slices.Contains(cmd.Args(), any("acked")) {
			cmd.SetErr(errDead)
			return errDead
		}
		return next(ctx, cmd)
	}
}

// The head of a key needs more than its followers to be acknowledged, because it was returned once. Who dies in between
// has not acknowledged the followers alone: they would never come again behind it.
func TestFollowersAreNotAcknowledgedBeforeTheirHead(t *testing.T) {
	w := newWorld(t)
	w.onePartition()
	hook := &dying{}
	d := w.beside(hook)
	s, err := d.Subscribe(w.ctx(), driver.SubscribeOptions{Topic: "jobs", Instance: "a", Lease: time.Minute, MaxRun: 10})
	w.ok(err)
	w.publish(0, 1, "k")
	w.ok(s.Settle(w.ctx(), []driver.Settlement{{Delivery: w.take(s, 1)[0], Outcome: driver.Release}})[0])
	w.publish(1, 4, "k")
	w.publish(4, 6, "other")
	ds := w.take(s, 6)
	hook.armed.Store(true)
	for i, err := range s.Settle(w.ctx(), settlements(ds)) {
		if dead := ds[i].Key == "k"; dead != (err != nil) {
			t.Errorf("%s: %v", ds[i].ID, err)
		}
	}
	st, err := w.d.Stats(w.ctx(), "jobs")
	w.ok(err)
	if g := st.Groups[0]; g.Acked != 2 || g.Inflight != 4 {
		t.Errorf("%+v", g)
	}
	hook.armed.Store(false)
	w.settle(s, driver.Ack, ds[slices.IndexFunc(ds, func(d *driver.Delivery) bool { return d.Key == "k" })])
	w.ok(d.Close(w.ctx()))
	w.sound()
}

// A lease that is over is refused although nobody has looked since: no script has returned the message yet.
func TestLapsedLeaseIsRefused(t *testing.T) {
	w := newWorld(t)
	w.onePartition()
	s := w.subscribe("a", time.Second)
	w.publish(0, 2, "")
	ds := w.take(s, 2)
	key := fmt.Sprintf("{%s/jobs/0}:g:default:lease", w.prefix)
	w.until("the lease is over", func() bool {
		ends, err := w.c.ZRangeWithScores(w.ctx(), key, -1, -1).Result()
		w.ok(err)
		now, err := w.c.Time(w.ctx()).Result()
		w.ok(err)
		return now.UnixMilli() > int64(ends[0].Score)
	})
	for i, o := range []driver.Outcome{driver.Ack, driver.Retry} {
		if err := s.Settle(w.ctx(), []driver.Settlement{{Delivery: ds[i], Outcome: o}})[0]; !errors.Is(err,
			driver.ErrLeaseLost) {
			t.Errorf("%s of a lapsed lease: %v", o, err)
		}
	}
}

// A delivery that ended is refused although the lease of its claim goes on for others, and although another holds the
// message now.
func TestEndedDeliveryIsRefused(t *testing.T) {
	w := newWorld(t)
	w.onePartition()
	s := w.subscribe("a", time.Minute)
	w.publish(0, 3, "")
	ds := w.take(s, 3)
	refused := func(what string, d *driver.Delivery) {
		if err := s.Settle(w.ctx(), settlements([]*driver.Delivery{d}))[0]; !errors.Is(err, driver.ErrLeaseLost) {
			t.Errorf("%s: %v", what, err)
		}
	}
	w.settle(s, driver.Ack, ds[0])
	refused("acknowledged again", ds[0])
	w.ok(s.Settle(w.ctx(), []driver.Settlement{{Delivery: ds[1], Outcome: driver.Release}})[0])
	refused("acknowledged after it was released", ds[1])
	again := w.take(s, 1)
	refused("acknowledged by its last holder", ds[1])
	w.settle(s, driver.Ack, again[0], ds[2])
	w.sound()
}
