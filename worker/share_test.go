package worker_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/worker"
)

// gauge counts what runs at once.
type gauge struct {
	mu        sync.Mutex
	now, most int
	total     int
}

func (g *gauge) enter() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now++
	g.total++
	g.most = max(g.most, g.now)
}

func (g *gauge) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now--
}

func (g *gauge) sleeper(d time.Duration) func(context.Context, *ferry.Delivery) error {
	return func(context.Context, *ferry.Delivery) error {
		g.enter()
		time.Sleep(d)
		g.leave()
		return nil
	}
}

func TestConcurrency(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		var bounded, free gauge
		w := worker.New(r.broker, worker.Options{Concurrency: 10})
		worker.HandleRaw(w, "bounded", bounded.sleeper(time.Second), worker.Concurrency(3))
		worker.HandleRaw(w, "free", free.sleeper(time.Second))
		r.publish("bounded", numbered(30))
		r.publish("free", numbered(70))
		begin := time.Now()
		stop := start(t, w)
		for r.group("free").Acked+r.group("bounded").Acked < 100 {
			pause(time.Second)
		}
		// 100 seconds of work in 10 slots, which the free topic may have got first
		if took := time.Since(begin); took > 14*time.Second {
			t.Errorf("took %v", took)
		}
		if bounded.most != 3 || free.most < 7 || free.most > 10 {
			t.Errorf("%d and %d at once", bounded.most, free.most)
		}
		mustStop(t, stop)
	})
}

// A topic with a huge backlog leaves another one its turn.
func TestTopicsShareTheSlots(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		var busy, quiet gauge
		w := worker.New(r.broker, worker.Options{Concurrency: 4})
		worker.HandleRaw(w, "busy", busy.sleeper(10*time.Millisecond))
		worker.HandleRaw(w, "quiet", quiet.sleeper(10*time.Millisecond))
		r.publish("busy", numbered(10_000))
		stop := start(t, w)
		pause(time.Second)
		r.publish("quiet", numbered(100))
		pause(600 * time.Millisecond) // alone they need 250 ms, half of the slots are theirs
		if quiet.total != 100 {
			t.Errorf("%d of 100 handled beside %d of the busy topic", quiet.total, busy.total)
		}
		pause(time.Minute)
		mustStop(t, stop)
	})
}

func TestGroupsEachGetEverything(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		var a, b gauge
		w := worker.New(r.broker, worker.Options{})
		worker.HandleRaw(w, topic, a.sleeper(0), worker.Group("a"))
		worker.HandleRaw(w, topic, b.sleeper(0), worker.Group("b"))
		stop := start(t, w)
		pause(0)
		r.publish(topic, numbered(100))
		pause(time.Second)
		mustStop(t, stop)
		if a.total != 100 || b.total != 100 {
			t.Errorf("%d and %d of 100", a.total, b.total)
		}
	})
}

// Slow handlers take no more than they can run: a second worker gets half.
func TestSlowHandlersDoNotHoard(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		var g [2]gauge
		r.publish(topic, numbered(64))
		var stops []func() error
		for i := range g {
			w := worker.New(r.broker, worker.Options{Concurrency: 8})
			worker.HandleRaw(w, topic, g[i].sleeper(10*time.Second))
			stops = append(stops, start(t, w))
			pause(time.Second)
			if s := w.Stats().Consumers[0]; s.Waiting != 0 || s.Running != 8 {
				t.Errorf("%+v", s)
			}
		}
		pause(time.Minute)
		if g[0].total != 32 || g[1].total != 32 {
			t.Errorf("%d and %d of 64", g[0].total, g[1].total)
		}
		for _, stop := range stops {
			mustStop(t, stop)
		}
	})
}

// Handlers that were fast turn slow while much was prefetched for them: others get it within seconds.
func TestPrefetchedMessagesAreGivenBack(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		var mu sync.Mutex
		n := 0
		w := worker.New(r.broker, worker.Options{Concurrency: 2})
		worker.HandleRaw(w, topic, func(context.Context, *ferry.Delivery) error {
			mu.Lock()
			n++
			slow := n > 1000
			mu.Unlock()
			if slow {
				time.Sleep(time.Hour)
			}
			return nil
		})
		r.publish(topic, numbered(3000))
		stop := start(t, w)
		pause(time.Second / 2)
		if s := w.Stats().Consumers[0]; s.Waiting < 100 {
			t.Errorf("only %d prefetched for fast handlers", s.Waiting)
		}
		pause(2 * time.Second)
		s := w.Stats().Consumers[0]
		if s.Waiting != 0 || s.Running != 2 || r.group(topic).Ready != 1998 {
			t.Errorf("%+v, %+v", s, r.group(topic))
		}
		pause(time.Minute)
		if again := w.Stats().Consumers[0].Released; again != s.Released {
			t.Errorf("%d more were fetched in vain", again-s.Released)
		}
		go func() { _ = stop() }()
		pause(2 * time.Hour)
	})
}

// A key whose head runs for long does not keep other keys from being fetched.
func TestHotKeyDoesNotFillTheWorker(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		var others gauge
		w := worker.New(r.broker, worker.Options{Concurrency: 4})
		worker.HandleRaw(w, topic, func(ctx context.Context, d *ferry.Delivery) error {
			if d.Key == "hot" {
				time.Sleep(time.Minute)
				return nil
			}
			return others.sleeper(time.Second)(ctx, d)
		})
		r.keyed(topic, "hot", 200)
		r.publish(topic, numbered(60))
		stop := start(t, w)
		pause(30 * time.Second)
		if others.total != 60 {
			t.Errorf("%d of 60 others handled", others.total)
		}
		if s := w.Stats().Consumers[0]; s.Waiting > 32 {
			t.Errorf("%d of the hot key held", s.Waiting)
		}
		go func() { _ = stop() }()
		pause(2 * time.Minute)
	})
}

// Long handlers of a topic with a backlog do not keep the slots to themselves either.
func TestLongHandlersShareTheSlots(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		var a, b, c gauge
		w := worker.New(r.broker, worker.Options{Concurrency: 6})
		worker.HandleRaw(w, "a", a.sleeper(10*time.Second))
		worker.HandleRaw(w, "b", b.sleeper(10*time.Second))
		worker.HandleRaw(w, "c", c.sleeper(10*time.Second))
		for _, name := range []string{"a", "b", "c"} {
			r.publish(name, numbered(200))
		}
		stop := start(t, w)
		pause(605 * time.Second)
		for _, g := range []*gauge{&a, &b, &c} {
			if g.total < 100 || g.total > 140 { // 366 were started in all
				t.Errorf("%d, %d and %d started", a.total, b.total, c.total)
				break
			}
		}
		go func() { _ = stop() }()
		pause(time.Minute)
	})
}

// Many quick messages leave the slow ones of another topic their share, and the other way round.
func TestQuickAndSlowHandlersShareTheSlots(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		var quick, slow gauge
		w := worker.New(r.broker, worker.Options{Concurrency: 4})
		worker.HandleRaw(w, "quick", quick.sleeper(time.Millisecond))
		worker.HandleRaw(w, "slow", slow.sleeper(10*time.Second))
		r.publish("quick", numbered(300_000))
		stop := start(t, w)
		pause(time.Second)
		r.publish("slow", numbered(100))
		pause(61 * time.Second)
		if slow.total < 12 { // two slots for six times ten seconds
			t.Errorf("%d slow ones started", slow.total)
		}
		if quick.total < 90_000 { // two slots for five times ten seconds: at first the slow ones got all four
			t.Errorf("%d quick ones handled", quick.total)
		}
		go func() { _ = stop() }()
		pause(time.Minute)
	})
}
