package worker_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/worker"
)

func TestStopGivesBackWhatHasNotStarted(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		w := worker.New(r.broker, worker.Options{Concurrency: 50})
		var started, ended atomic.Int64
		worker.HandleRaw(w, topic, func(ctx context.Context, _ *ferry.Delivery) error {
			started.Add(1)
			time.Sleep(3 * time.Second)
			ended.Add(1)
			return ctx.Err()
		}, worker.MaxRun(100))
		for i := range 100 {
			r.keyed(topic, strconv.Itoa(i), 50)
		}
		r.publish(topic, numbered(5000))
		stop := start(t, w)
		pause(time.Second)
		begin := time.Now()
		go func() { _ = stop() }()
		pause(100 * time.Millisecond)
		if g := r.group(topic); g.Ready != 10_000-50 || g.Inflight != 50 {
			t.Errorf("100 ms later: %+v", g)
		}
		mustStop(t, stop)
		if took := time.Since(begin); took != 2*time.Second {
			t.Errorf("stopped after %v, when handlers were done after 2s", took)
		}
		g := r.group(topic)
		if started.Load() != 50 || ended.Load() != 50 || g.Acked != 50 || g.Ready != 10_000-50 || g.Inflight != 0 ||
			g.Redelivered != 0 {
			t.Errorf("%d started, %d ended, %+v", started.Load(), ended.Load(), g)
		}
		if g.Consumers != 0 {
			t.Errorf("%d consumers left", g.Consumers)
		}
	})
}

// What was given back is at the head: another worker sees everything in order, uncounted.
func TestStopReturnsToTheHead(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		w := worker.New(r.broker, worker.Options{Concurrency: 1})
		worker.HandleRaw(w, topic, func(context.Context, *ferry.Delivery) error { time.Sleep(time.Second); return nil })
		r.publish(topic, numbered(20))
		stop := start(t, w)
		pause(1500 * time.Millisecond) // 0 done, 1 running
		mustStop(t, stop)

		var log journal
		next := worker.New(r.broker, worker.Options{Concurrency: 1})
		worker.HandleRaw(next, topic, func(_ context.Context, d *ferry.Delivery) error {
			log.add("%s/%d/%d", body(d), d.Attempt, d.Deliveries)
			return nil
		})
		stop = start(t, next)
		pause(time.Second)
		mustStop(t, stop)
		var want []string
		for i := 2; i < 20; i++ {
			want = append(want, fmt.Sprintf("%d/1/1", i))
		}
		equal(t, log.all(), want)
	})
}

func TestStopTimeoutCancelsAndReleases(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		w := worker.New(r.broker, worker.Options{StopTimeout: 10 * time.Second})
		var cause error
		worker.HandleRaw(w, topic, func(ctx context.Context, _ *ferry.Delivery) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return ctx.Err()
		})
		r.publish(topic, []string{"x"})
		stop := start(t, w)
		pause(time.Second)
		begin := time.Now()
		mustStop(t, stop)
		if took := time.Since(begin); took != 10*time.Second || !errors.Is(cause, worker.ErrStopping) {
			t.Errorf("stopped after %v, cause %v", took, cause)
		}
		if e := r.browse(topic, "ready"); len(e) != 1 || e[0].Attempt != 1 || e[0].Deliveries != 1 {
			t.Errorf("not given back uncounted: %+v", e)
		}
	})
}

func TestStopDoesNotWaitForeverForAZombie(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		w := worker.New(r.broker, worker.Options{StopTimeout: 10 * time.Second})
		forever := make(chan struct{})
		worker.HandleRaw(w, topic, func(context.Context, *ferry.Delivery) error { <-forever; return nil })
		r.publish(topic, []string{"x"})
		stop := start(t, w)
		pause(time.Second)
		begin := time.Now()
		err := stop()
		if !errors.Is(err, worker.ErrAbandoned) {
			t.Errorf("Run returned %v", err)
		}
		if took := time.Since(begin); took > 15*time.Second {
			t.Errorf("stopped after %v", took)
		}
		if g := r.group(topic); g.Ready != 1 || g.Inflight != 0 {
			t.Errorf("not given back: %+v", g)
		}
		close(forever)
		synctest.Wait()
		if g := r.group(topic); g.Acked != 0 {
			t.Errorf("the late result counted: %+v", g)
		}
	})
}

func TestStopWhileTheBrokerIsAway(t *testing.T) {
	broken(t, func(t *testing.T, r *rig, d *faulty) {
		w := worker.New(r.broker, worker.Options{})
		worker.HandleRaw(w, topic, func(context.Context, *ferry.Delivery) error { return nil })
		stop := start(t, w)
		pause(time.Second)
		d.dead()
		r.publish(topic, []string{"x"})
		pause(time.Second)
		begin := time.Now()
		_ = stop()
		if took := time.Since(begin); took > 15*time.Second {
			t.Errorf("stopped after %v", took)
		}
	})
}

func TestStopIsImmediateWhenIdle(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		w := worker.New(r.broker, worker.Options{})
		worker.HandleRaw(w, topic, func(context.Context, *ferry.Delivery) error { return nil })
		stop := start(t, w)
		pause(time.Second)
		begin := time.Now()
		mustStop(t, stop)
		if took := time.Since(begin); took != 0 {
			t.Errorf("stopped after %v", took)
		}
	})
}

func TestClosedBrokerEndsRun(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		w := worker.New(r.broker, worker.Options{})
		worker.HandleRaw(w, topic, func(ctx context.Context, _ *ferry.Delivery) error {
			<-ctx.Done()
			return ctx.Err()
		})
		r.publish(topic, []string{"x"})
		done := make(chan error, 1)
		go func() { done <- w.Run(context.Background()) }()
		pause(time.Second)
		if err := r.broker.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		if err := <-done; !errors.Is(err, ferry.ErrClosed) {
			t.Errorf("Run returned %v", err)
		}
	})
}

// A worker that drains tells the broker so before its handlers have ended, and leaves the groups it has nothing of.
func TestDrainLeavesTheRestToOthers(t *testing.T) {
	broken(t, func(t *testing.T, r *rig, d *faulty) {
		begin := time.Now()
		var told journal
		d.drained = func() { told.add("%v", time.Since(begin)) }
		w := worker.New(r.broker, worker.Options{Concurrency: 4})
		handle := func(context.Context, *ferry.Delivery) error { time.Sleep(10 * time.Second); return nil }
		worker.HandleRaw(w, topic, handle)
		worker.HandleRaw(w, "idle", handle)
		r.publish(topic, []string{"x"})
		r.publish("idle", []string{"x"})
		stop := start(t, w)
		pause(5 * time.Second)
		r.publish(topic, []string{"y"})
		pause(6 * time.Second)
		go func() { _ = stop() }()
		pause(time.Second)
		equal(t, told.all(), []string{"11s", "11s"})
		if a, b := r.group(topic), r.group("idle"); a.Consumers != 1 || b.Consumers != 0 {
			t.Errorf("%d consumers where a handler runs, %d where none does", a.Consumers, b.Consumers)
		}
		mustStop(t, stop)
		if g := r.group(topic); g.Acked != 2 || g.Consumers != 0 {
			t.Errorf("%+v", g)
		}
	})
}

// A store that is gone for good ends Run, whoever finds out.
func TestClosedStoreEndsRun(t *testing.T) {
	gone := fmt.Errorf("the disk is gone: %w", ferry.ErrClosed)
	for name, plan := range map[string]func(d *faulty){
		"settle": func(d *faulty) { d.settle = func([]driver.Settlement) error { return gone } },
		"extend": func(d *faulty) { d.extend = func() error { return gone } },
		"begin":  func(d *faulty) { d.begin = func() error { return gone } },
	} {
		t.Run(name, func(t *testing.T) {
			broken(t, func(t *testing.T, r *rig, d *faulty) {
				r.publish(topic, []string{"x"})
				loseAll(r)
				w := worker.New(r.broker, worker.Options{Concurrency: 4})
				worker.HandleRaw(w, topic, func(ctx context.Context, _ *ferry.Delivery) error {
					select {
					case <-time.After(8 * time.Second):
					case <-ctx.Done():
					}
					return nil
				})
				d.set(func() { plan(d) })
				done := make(chan error, 1)
				go func() { done <- w.Run(context.Background()) }()
				pause(20 * time.Second)
				select {
				case err := <-done:
					if !errors.Is(err, ferry.ErrClosed) {
						t.Errorf("Run returned %v", err)
					}
				default:
					t.Errorf("Run goes on: %+v", w.Health())
					d.set(func() { d.receive = func() error { return gone } })
					_ = r.memory.Close(context.Background())
					<-done
				}
			})
		})
	}
}
