package worker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/worker"
)

// Only what was lost before is recorded when it begins, and many in one call.
func TestBeginOfWhatWasLostBefore(t *testing.T) {
	broken(t, func(t *testing.T, r *rig, d *faulty) {
		r.publish(topic, numbered(64))
		loseAll(r)
		var plain, lost atomic.Int64
		w := worker.New(r.broker, worker.Options{Concurrency: 16})
		worker.HandleRaw(w, topic, func(_ context.Context, d *ferry.Delivery) error {
			if d.Deliveries == 1 {
				plain.Add(1)
			} else {
				lost.Add(1)
			}
			time.Sleep(time.Second)
			return nil
		})
		d.set(func() { d.begin = func() error { time.Sleep(10 * time.Millisecond); return nil } })
		stop := start(t, w)
		pause(time.Minute)
		calls := d.count("begin")
		if lost.Load() != 64 || calls < 4 || calls > 20 {
			t.Errorf("%d calls of Begin for %d messages", calls, lost.Load())
		}
		r.publish(topic, numbered(100))
		pause(time.Minute)
		mustStop(t, stop)
		if plain.Load() != 100 || d.count("begin") != calls {
			t.Errorf("%d calls of Begin for %d plain messages", d.count("begin")-calls, plain.Load())
		}
		if g := r.group(topic); g.Acked != 164 || g.Dead != 0 {
			t.Errorf("%+v", g)
		}
	})
}

// What a broker takes to record beginnings counts as the time that messages take, so that a slow one is not asked for
// more than can start: what is claimed in vain makes it slower still.
func TestSlowBeginIsPartOfThePace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const messages = 100
		var claimed, handled atomic.Int64
		d := new(faulty)
		r := newRig(t, func(inner driver.Driver) driver.Driver { d.Driver = inner; return d },
			ferry.Hooks{Received: func(context.Context, ferry.Event) { claimed.Add(1) }})
		r.publish(topic, numbered(messages))
		loseAll(r)
		d.set(func() { d.begin = func() error { time.Sleep(500 * time.Millisecond); return nil } })
		w := worker.New(r.broker, worker.Options{Concurrency: 4})
		worker.HandleRaw(w, topic, func(context.Context, *ferry.Delivery) error {
			time.Sleep(time.Millisecond)
			handled.Add(1)
			return nil
		})
		stop := start(t, w)
		pause(time.Minute)
		mustStop(t, stop)
		if handled.Load() != messages || claimed.Load() > 2*messages {
			t.Errorf("%d messages were claimed for %d that ran", claimed.Load(), handled.Load())
		}
	})
}

// No handler starts whose beginning is not recorded. While the lease holds it is tried again.
func TestBeginThatFails(t *testing.T) {
	for _, failure := range []error{ferry.ErrNotApplied, ferry.ErrUnknown} {
		for _, batch := range []bool{false, true} {
			t.Run(fmt.Sprint(failure, ", batch ", batch), func(t *testing.T) {
				broken(t, func(t *testing.T, r *rig, d *faulty) {
					r.publish(topic, numbered(3))
					r.keyed(topic, "k", 3)
					loseAll(r)
					d.set(func() { d.begin = func() error { return failure } })
					var log journal
					w := worker.New(r.broker, worker.Options{Concurrency: 4})
					if batch {
						worker.HandleBatch(w, topic, func(_ context.Context, ms []*ferry.Msg[[]byte]) error {
							for _, m := range ms {
								log.add("%s", m.Value)
							}
							return nil
						})
					} else {
						worker.HandleRaw(w, topic, func(_ context.Context, d *ferry.Delivery) error {
							log.add("%s", body(d))
							return nil
						})
					}
					stop := start(t, w)
					pause(5 * time.Second)
					equal(t, log.all(), nil)
					if n := d.count("begin"); n < 2 || n > 100 {
						t.Errorf("%d calls of Begin in 5 s", n)
					}
					if n := w.Running(0); len(n) != 0 {
						t.Errorf("running: %v", n)
					}
					d.set(func() { d.begin = nil })
					pause(time.Minute)
					mustStop(t, stop)
					var keyed []string
					for _, line := range log.all() {
						if strings.HasPrefix(line, "k") {
							keyed = append(keyed, line)
						}
					}
					equal(t, keyed, []string{"k:0", "k:1", "k:2"})
					if g := r.group(topic); len(log.all()) != 6 || g.Acked != 6 || g.Inflight+g.Ready != 0 {
						t.Errorf("%q, %+v", log.all(), g)
					}
				})
			})
		}
	}
}

// A worker that drains does not start what waits for its record.
func TestBeginWhileDraining(t *testing.T) {
	broken(t, func(t *testing.T, r *rig, d *faulty) {
		r.publish(topic, numbered(3))
		loseAll(r)
		d.set(func() { d.begin = func() error { return ferry.ErrNotApplied } })
		w := worker.New(r.broker, worker.Options{})
		worker.HandleRaw(w, topic, func(context.Context, *ferry.Delivery) error { t.Error("it ran"); return nil })
		stop := start(t, w)
		pause(2 * time.Second)
		begin := time.Now()
		mustStop(t, stop)
		if took := time.Since(begin); took > time.Second {
			t.Errorf("the stop took %v", took)
		}
		if g := r.group(topic); g.Ready != 3 {
			t.Errorf("%+v", g)
		}
	})
}

// A broker that comes and goes makes nothing die that a living worker runs: each time the worker speaks of what it
// lost.
func TestBrokerThatIsAwayAgainAndAgain(t *testing.T) {
	for _, limit := range []int{3, 5} {
		t.Run(fmt.Sprint("at most ", limit), func(t *testing.T) { awayAgainAndAgain(t, limit) })
	}
}

func awayAgainAndAgain(t *testing.T, limit int) {
	broken(t, func(t *testing.T, r *rig, d *faulty) {
		w := worker.New(r.broker, worker.Options{Concurrency: 4, Lease: 2 * time.Second, MaxDeliveries: limit})
		var most atomic.Int64
		worker.HandleRaw(w, topic, func(ctx context.Context, d *ferry.Delivery) error {
			most.Store(max(most.Load(), int64(d.Deliveries)))
			select {
			case <-time.After(12 * time.Second):
			case <-ctx.Done():
			}
			return ctx.Err()
		})
		r.publish(topic, numbered(3))
		r.keyed(topic, "k", 3)
		stop := start(t, w)
		for range 8 {
			pause(5 * time.Second)
			d.dead()
			pause(4 * time.Second)
			d.revive()
		}
		pause(5 * time.Minute)
		mustStop(t, stop)
		if g := r.group(topic); g.Dead != 0 || g.Acked != 6 || g.Redelivered < 8 {
			t.Errorf("deliveries up to %d, %+v", most.Load(), g)
		}
	})
}

// What a zombie lost is spoken of too, although nobody waits for its handler.
func TestZombieSpeaksOfWhatItLost(t *testing.T) {
	broken(t, func(t *testing.T, r *rig, d *faulty) {
		suspect(r, 3, "x")
		hang := make(chan struct{})
		var log journal
		w := worker.New(r.broker, worker.Options{Concurrency: 4, Lease: 2 * time.Second})
		worker.HandleRaw(w, topic, func(_ context.Context, d *ferry.Delivery) error {
			log.add("%d", d.Deliveries)
			if len(log.all()) <= 3 {
				<-hang
			}
			return nil
		})
		stop := start(t, w)
		for range 3 {
			pause(time.Second)
			d.dead()
			pause(4 * time.Second)
			d.revive()
		}
		pause(time.Minute)
		close(hang)
		mustStop(t, stop)
		if lines := log.all(); len(lines) != 4 || slices.Contains(lines, "5") {
			t.Errorf("deliveries %q", lines)
		}
	})
}

// What no handler ever saw does not die, however many processes do.
func TestUnseenNeverDies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, ferry.Hooks{})
		r.publish(topic, numbered(20))
		r.keyed(topic, "k", 10)
		var mu sync.Mutex
		most := 0
		launch := func(wait time.Duration) (*faulty, func() error) {
			d := &faulty{Driver: r.memory}
			b, err := ferry.New(d, ferry.Options{})
			if err != nil {
				t.Fatal(err)
			}
			w := worker.New(b, worker.Options{Lease: 2 * time.Second})
			worker.HandleBatch(w, topic, func(_ context.Context, ms []*ferry.Msg[[]byte]) error {
				mu.Lock()
				defer mu.Unlock()
				for _, m := range ms {
					most = max(most, m.Deliveries)
				}
				return nil
			}, worker.BatchWait(wait))
			return d, start(t, w)
		}
		for range 20 { // each dies while it waits for its batch to fill
			d, stop := launch(time.Hour)
			pause(time.Second)
			d.dead()
			pause(3 * time.Second)
			_ = stop()
		}
		_, stop := launch(time.Millisecond)
		pause(time.Minute)
		mustStop(t, stop)
		if g := r.group(topic); g.Acked != 30 || g.Dead != 0 || most != 2 || g.Redelivered < 20*21 {
			t.Errorf("deliveries up to %d, %+v", most, g)
		}
	})
}

// The outcome of a handler that lost its message to another worker is sent all the same: the loss does not count then.
func TestOutcomeOfALostLeaseIsSent(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		t.Run(fmt.Sprint("deaf ", deaf), func(t *testing.T) {
			broken(t, func(t *testing.T, r *rig, d *faulty) {
				suspect(r, 2, "x")
				var all received
				d.seen = &all
				hang := make(chan struct{})
				w := worker.New(r.broker, worker.Options{Concurrency: 1})
				worker.HandleRaw(w, topic, func(ctx context.Context, _ *ferry.Delivery) error {
					if deaf {
						<-hang
					}
					<-ctx.Done()
					return ctx.Err()
				})
				stop := start(t, w)
				pause(time.Second)
				var late []driver.Settlement
				d.set(func() {
					d.settle = func(s []driver.Settlement) error { late = append(late, s...); return nil }
				})
				ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
				defer cancel()
				d.revoking(ctx, all.ds)
				pause(1500 * time.Millisecond)
				if len(late) != 1 || late[0].Delivery != all.ds[0] {
					t.Errorf("settled %v", late)
				}
				close(hang)
				if err := stop(); errors.Is(err, worker.ErrAbandoned) {
					t.Error(err)
				}
			})
		})
	}
}

// What is revoked, or lost, while it waits for its record does not start.
func TestTakenAwayBeforeItBegins(t *testing.T) {
	for _, how := range []string{"revoked", "lost"} {
		t.Run(how, func(t *testing.T) {
			broken(t, func(t *testing.T, r *rig, d *faulty) {
				r.keyed(topic, "k", 3)
				loseAll(r)
				begin := time.Now()
				var all received
				var log journal
				slow := true
				d.set(func() {
					d.seen = &all
					d.begin = func() error {
						if slow {
							slow = false
							time.Sleep(2500 * time.Millisecond)
						}
						return nil
					}
					if how == "lost" {
						d.lose = "k:1"
					}
				})
				w := worker.New(r.broker, worker.Options{Lease: 6 * time.Second})
				worker.HandleBatch(w, topic, func(_ context.Context, ms []*ferry.Msg[[]byte]) error {
					log.add("%v %s", time.Since(begin).Truncate(100*time.Millisecond), bodies(ms))
					return nil
				})
				stop := start(t, w)
				pause(time.Second)
				if how == "revoked" {
					d.revoking(context.Background(), all.ds[1:])
				}
				pause(time.Second)
				d.set(func() { d.lose = "" })
				pause(time.Minute)
				mustStop(t, stop)
				if lines := log.all(); len(lines) != 2 || lines[0] != "2.5s k:0" || !strings.HasSuffix(lines[1], "k:1 k:2") {
					t.Errorf("%q", lines)
				}
				if g := r.group(topic); g.Acked != 3 || g.Redelivered != 3 {
					t.Errorf("%+v", g)
				}
			})
		})
	}
}

// A suspect that did not start after all leaves its turn to others, and to itself when it comes again.
func TestSuspectThatDoesNotBegin(t *testing.T) {
	for _, batch := range []bool{false, true} {
		t.Run(fmt.Sprint("batch ", batch), func(t *testing.T) {
			broken(t, func(t *testing.T, r *rig, d *faulty) {
				suspect(r, 3, "x")
				var all received
				slow := true
				d.set(func() {
					d.seen = &all
					d.begin = func() error {
						if slow {
							slow = false
							time.Sleep(2500 * time.Millisecond)
						}
						return nil
					}
				})
				w := worker.New(r.broker, worker.Options{MaxDeliveries: 3})
				if batch {
					worker.HandleBatch(w, topic, func(context.Context, []*ferry.Msg[[]byte]) error { return nil })
				} else {
					worker.HandleRaw(w, topic, func(context.Context, *ferry.Delivery) error { return nil })
				}
				stop := start(t, w)
				pause(time.Second)
				d.revoking(context.Background(), all.ds)
				pause(10 * time.Second)
				mustStop(t, stop)
				if g := r.group(topic); g.Acked != 1 || len(all.ds) != 2 {
					t.Errorf("%d deliveries, %+v", len(all.ds), g)
				}
			})
		})
	}
}
