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
	"github.com/ferrymq/ferry/driver/redisstream"
	"github.com/ferrymq/ferry/internal/redistest"
)

// dying is a hook of a client whose process dies when it has sent its acknowledgements: nothing else is sent any more.
type dying struct{ armed atomic.Bool }

var errDead = errors.New("the process is dead")

func (d *dying) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (d *dying) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		if d.armed.Load() && !slices.Contains(cmd.Args(), any("acked")) {
			cmd.SetErr(errDead)
			return errDead
		}
		return next(ctx, cmd)
	}
}

func (d *dying) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return next
}

// The head of a key needs more than its followers to be acknowledged, because it was returned once. Who dies in between has not
// acknowledged the followers alone: they would never come again behind it.
func TestFollowersAreNotAcknowledgedBeforeTheirHead(t *testing.T) {
	w := newWorld(t)
	w.onePartition()
	o, err := goredis.ParseURL(redistest.Shared(t).URL())
	w.ok(err)
	client, hook := goredis.NewClient(o), &dying{}
	client.AddHook(hook)
	d, err := redisstream.New(w.ctx(), redisstream.Options{Client: client, Prefix: w.prefix})
	w.ok(err)
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
	w.ok(errors.Join(d.Close(context.Background()), client.Close()))
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
		if err := s.Settle(w.ctx(), []driver.Settlement{{Delivery: ds[i], Outcome: o}})[0]; !errors.Is(err, driver.ErrLeaseLost) {
			t.Errorf("%s of a lapsed lease: %v", o, err)
		}
	}
}
