package worker_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/worker"
)

// orderly checks that messages of a key start in order and one at a time, retries included.
type orderly struct {
	t    *testing.T
	mu   sync.Mutex
	next map[string]int
	busy map[string]bool
	done int
}

func newOrderly(t *testing.T) *orderly {
	return &orderly{t: t, next: make(map[string]int), busy: make(map[string]bool)}
}

func (o *orderly) start(d *ferry.Delivery) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.busy[d.Key] {
		o.t.Errorf("%s starts while another message of its key runs", d.Body)
	}
	_, number, _ := strings.Cut(body(d), ":")
	if n, _ := strconv.Atoi(number); n != o.next[d.Key] {
		o.t.Errorf("%s starts where %d is due", d.Body, o.next[d.Key])
	}
	o.busy[d.Key] = true
}

func (o *orderly) end(d *ferry.Delivery, done bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.busy[d.Key] = false
	if done {
		o.next[d.Key]++
		o.done++
	}
}

func (o *orderly) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.done
}

func TestKeysKeepTheirOrder(t *testing.T) {
	for _, maxRun := range []int{1, 3, 32} {
		for _, workers := range []int{1, 3} {
			t.Run(fmt.Sprintf("run of %d, %d workers", maxRun, workers), func(t *testing.T) {
				virtual(t, func(t *testing.T, r *rig) { keysKeepTheirOrder(t, r, maxRun, workers) })
			})
		}
	}
}

func keysKeepTheirOrder(t *testing.T, r *rig, maxRun, workers int) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	var mu sync.Mutex
	chance := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return rnd.IntN(n)
	}
	o := newOrderly(t)
	var stops []func() error
	for range workers {
		w := worker.New(r.broker, worker.Options{Concurrency: 8, MaxAttempts: 1000})
		worker.HandleRaw(w, topic, func(_ context.Context, d *ferry.Delivery) error {
			o.start(d)
			time.Sleep(time.Duration(chance(20)) * time.Millisecond)
			switch chance(12) {
			case 0:
				o.end(d, false)
				return worker.RetryAfter(errBilling, time.Duration(chance(3))*10*time.Millisecond)
			case 1:
				o.end(d, false)
				return worker.Park(time.Duration(chance(3)) * 10 * time.Millisecond)
			}
			o.end(d, true)
			return nil
		}, worker.MaxRun(maxRun))
		stops = append(stops, start(t, w))
	}
	const keys, each = 20, 50
	for i := range each {
		for k := range keys {
			r.publish(topic, []string{fmt.Sprintf("%d:%d", k, i)}, ferry.Key(strconv.Itoa(k)))
		}
	}
	pause(time.Hour)
	for _, stop := range stops {
		mustStop(t, stop)
	}
	if o.done != keys*each || r.group(topic).Acked != keys*each {
		t.Errorf("%d of %d done: %+v", o.done, keys*each, r.group(topic))
	}
	if g := r.group(topic); g.Redelivered != 0 {
		t.Errorf("%d leases lost", g.Redelivered)
	}
}

// While the head of a key waits for its retry, its followers wait, and other keys do not.
func TestPoisonedHeadHoldsUpItsKeyOnly(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		w := worker.New(r.broker, worker.Options{Concurrency: 4, Retry: ferry.Delays(time.Minute), MaxAttempts: 3})
		var log journal
		begin := time.Now()
		healthy := 0
		var slowest time.Duration
		var mu sync.Mutex
		worker.HandleRaw(w, topic, func(_ context.Context, d *ferry.Delivery) error {
			if d.Key == "poisoned" {
				log.add("%s/%d at %v", body(d), d.Attempt, time.Since(begin))
				if body(d) == "poisoned:0" {
					return errBilling
				}
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			healthy++
			slowest = max(slowest, time.Since(begin))
			return nil
		})
		r.keyed(topic, "poisoned", 3)
		for i := range 500 {
			r.keyed(topic, strconv.Itoa(i), 4)
		}
		stop := start(t, w)
		pause(5 * time.Minute)
		mustStop(t, stop)
		if healthy != 2000 || slowest > time.Second {
			t.Errorf("%d of 2000 others handled, the last after %v", healthy, slowest)
		}
		equal(t, log.all(), []string{
			"poisoned:0/1 at 0s", "poisoned:0/2 at 1m0s", "poisoned:0/3 at 2m0s", "poisoned:1/1 at 2m0s", "poisoned:2/1 at 2m0s",
		})
	})
}

func TestRelaxedFollowersPass(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		w := worker.New(r.broker, worker.Options{Retry: ferry.Delays(time.Minute)})
		var log journal
		worker.HandleRaw(w, topic, func(_ context.Context, d *ferry.Delivery) error {
			log.add("%s/%d", body(d), d.Attempt)
			if body(d) == "k:0" && d.Attempt == 1 {
				return errBilling
			}
			return nil
		}, worker.Relaxed())
		stop := start(t, w)
		pause(0)
		r.keyed(topic, "k", 3)
		pause(5 * time.Minute)
		mustStop(t, stop)
		equal(t, log.all(), []string{"k:0/1", "k:1/1", "k:2/1", "k:0/2"})
		if g := r.group(topic); g.Acked != 3 || g.Order != driver.Relaxed {
			t.Errorf("%+v", g)
		}
	})
}

func TestIdleLanesAreFreed(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		w := worker.New(r.broker, worker.Options{})
		worker.HandleRaw(w, topic, func(context.Context, *ferry.Delivery) error { time.Sleep(time.Second); return nil })
		for i := range 100 {
			r.keyed(topic, strconv.Itoa(i), 2)
		}
		stop := start(t, w)
		pause(time.Second / 2)
		if n := w.Stats().Consumers[0].Lanes; n < 16 {
			t.Errorf("%d lanes while 16 keys run", n)
		}
		pause(time.Minute)
		if s := w.Stats().Consumers[0]; s.Lanes != 0 || s.Acked != 200 {
			t.Errorf("%+v", s)
		}
		mustStop(t, stop)
	})
}

// The same in real time, where goroutines really race: followers that a fetch brings late must not overtake.
func TestKeysKeepTheirOrderInRealTime(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, ferry.Hooks{})
	o := newOrderly(t)
	const keys, each = 8, 400
	var n atomic.Int64
	all := make(chan struct{})
	var stops []func() error
	for range 2 {
		w := worker.New(r.broker, worker.Options{Concurrency: 8, MaxAttempts: 1_000_000})
		worker.HandleRaw(w, topic, func(_ context.Context, d *ferry.Delivery) error {
			o.start(d)
			if i := n.Add(1); i%5 == 0 {
				o.end(d, false)
				if i%10 == 0 {
					return worker.RetryAfter(errBilling, 0)
				}
				return worker.Park(time.Millisecond)
			}
			o.end(d, true)
			if o.count() == keys*each {
				close(all)
			}
			return nil
		})
		stops = append(stops, start(t, w))
	}
	for i := range each {
		for k := range keys {
			r.publish(topic, []string{fmt.Sprintf("%d:%d", k, i)}, ferry.Key(strconv.Itoa(k)))
		}
	}
	select {
	case <-all:
	case <-time.After(2 * time.Minute):
		t.Errorf("%d of %d done: %+v", o.count(), keys*each, r.group(topic))
	}
	for _, stop := range stops {
		mustStop(t, stop)
	}
	if g := r.group(topic); g.Acked != keys*each || g.Redelivered != 0 {
		t.Errorf("%+v", g)
	}
}
