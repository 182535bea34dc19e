package worker_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/worker"
)

// process is a worker on a broker of its own connection, which can be killed: from then on nothing it does arrives.
type process struct {
	d     *faulty
	w     *worker.Worker
	stop  func() error
	alive bool
}

// fleet restarts a process whenever a message kills it.
type fleet struct {
	t      *testing.T
	memory driver.Driver

	mu      sync.Mutex
	current *process
	ran     map[string]int
	deaths  int
}

// launch starts a process whose handlers run f, and die with it when f says so.
func (f *fleet) launch(handle func(p *process, d *ferry.Delivery) error, opts ...worker.HandlerOption) {
	p := &process{d: &faulty{Driver: f.memory}, alive: true}
	b, err := ferry.New(p.d, ferry.Options{})
	if err != nil {
		f.t.Fatal(err)
	}
	p.w = worker.New(b, worker.Options{Concurrency: 4, Lease: 2 * time.Second, StopTimeout: time.Second})
	worker.HandleRaw(p.w, topic, func(ctx context.Context, d *ferry.Delivery) error {
		f.mu.Lock()
		f.ran[body(d)]++
		f.mu.Unlock()
		err := handle(p, d)
		f.mu.Lock()
		alive := p.alive
		f.mu.Unlock()
		if !alive {
			<-ctx.Done()
		}
		return err
	}, opts...)
	f.mu.Lock()
	f.current = p
	f.mu.Unlock()
	p.stop = start(f.t, p.w)
}

// kill ends everything that p does.
func (f *fleet) kill(p *process) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p.alive {
		p.alive = false
		f.deaths++
		p.d.dead()
	}
}

func TestNeighboursOfAKillerSurvive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, ferry.Hooks{})
		f := &fleet{t: t, memory: r.memory, ran: make(map[string]int)}
		handle := func(p *process, d *ferry.Delivery) error {
			time.Sleep(10 * time.Millisecond) // neighbours are in flight too
			if body(d) == "killer" {
				f.kill(p)
			}
			return nil
		}
		r.publish(topic, []string{"a", "b", "killer", "c", "d", "e", "f", "g", "h"})
		r.keyed(topic, "k", 10)
		f.launch(handle)
		for range 200 {
			pause(time.Second)
			f.mu.Lock()
			p := f.current
			alive := p.alive
			f.mu.Unlock()
			if !alive {
				_ = p.stop()
				f.launch(handle)
			}
		}
		g := r.group(topic)
		if g.Dead != 1 || g.Acked != 18 || g.Ready+g.Inflight+g.Waiting != 0 {
			t.Errorf("%+v", g)
		}
		dl := r.dead(topic)
		if string(dl.Message.Body) != "killer" || dl.Reason != driver.ReasonMaxDeliveries || f.deaths != 5 {
			t.Errorf("dead: %s for %s after %d deaths", dl.Message.Body, dl.Reason, f.deaths)
		}
		for name, n := range f.ran {
			if name != "killer" && n > 3 { // twice with the killer, once alone
				t.Errorf("%s ran %d times", name, n)
			}
		}
		_ = f.current.stop()
	})
}

// suspect publishes a message that is delivered for the n-th time next: n-1 processes have died of it.
func suspect(r *rig, n int, name string, opts ...ferry.PublishOption) {
	r.t.Helper()
	r.publish(topic, []string{name}, opts...)
	for range n - 1 {
		loseAll(r)
	}
}

// loseAll claims and begins what is ready, and never speaks again.
func loseAll(r *rig) {
	r.t.Helper()
	ctx := context.Background()
	s, err := r.memory.Subscribe(ctx,
		driver.SubscribeOptions{Topic: topic, Instance: "victim", Lease: time.Second, MaxRun: 100})
	if err != nil {
		r.t.Fatal(err)
	}
	ds, err := s.Receive(ctx, 100)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := errors.Join(s.Begin(ctx, ds)...); err != nil {
		r.t.Fatal(err)
	}
	pause(2 * time.Second)
}

// diary notes when handlers of suspects begin, since it was made.
type diary struct {
	journal
	begin time.Time
}

func (j *diary) note(d *ferry.Delivery) {
	j.add("%v %s/%d", time.Since(j.begin), body(d), d.Deliveries)
}

// What a suspect costs is one slot: what runs beside it goes on, and as fast as ever.
func TestSuspectCostsOneSlot(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		suspect(r, 4, "long")
		w := worker.New(r.broker, worker.Options{Concurrency: 4})
		var quick atomic.Int64
		var ended atomic.Bool
		worker.HandleRaw(w, topic, func(_ context.Context, d *ferry.Delivery) error {
			if body(d) == "long" {
				time.Sleep(15 * time.Second)
				ended.Store(true)
				return nil
			}
			time.Sleep(5 * time.Millisecond)
			quick.Add(1)
			return nil
		})
		rate := func() float64 {
			before := quick.Load()
			for range 1000 {
				r.publish(topic, []string{"quick"})
				time.Sleep(10 * time.Millisecond)
			}
			return float64(quick.Load()-before) / 10
		}
		stop := start(t, w)
		pause(time.Second)
		beside := rate()
		if ended.Load() {
			t.Fatal("the suspect has ended already")
		}
		pause(10 * time.Second)
		alone := rate()
		mustStop(t, stop)
		if t.Logf("%.1f/s beside a suspect, %.1f/s without", beside, alone); beside < 0.95*alone || !ended.Load() {
			t.Error("a suspect slowed the others down")
		}
		if g := r.group(topic); g.Acked != 2001 {
			t.Errorf("%+v", g)
		}
	})
}

func TestSuspectsStartApart(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		for _, name := range []string{"a", "b", "c", "d"} {
			r.publish(topic, []string{name})
		}
		loseAll(r)
		loseAll(r)
		j := diary{begin: time.Now()}
		w := worker.New(r.broker, worker.Options{Concurrency: 8})
		worker.HandleRaw(w, topic, func(_ context.Context, d *ferry.Delivery) error {
			j.note(d)
			if body(d) == "a" || body(d) == "b" {
				time.Sleep(10 * time.Second)
			}
			return nil
		})
		stop := start(t, w)
		pause(time.Minute)
		mustStop(t, stop)
		equal(t, j.all(), []string{"0s a/3", "2s b/3", "4s c/3", "4s d/3"}) // d when c has ended, two seconds after b
	})
}

func TestLastChanceIsTheOnlySuspect(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		suspect(r, 2, "last")
		loseAll(r)
		r.publish(topic, []string{"first", "second"})
		loseAll(r) // last is at 4
		loseAll(r) // and at 5, the others at 3
		j := diary{begin: time.Now()}
		w := worker.New(r.broker, worker.Options{Concurrency: 8})
		worker.HandleRaw(w, topic, func(_ context.Context, d *ferry.Delivery) error {
			j.note(d)
			time.Sleep(2500 * time.Millisecond)
			return nil
		})
		stop := start(t, w)
		pause(time.Second)
		r.publish(topic, []string{"plain"})
		pause(time.Minute)
		mustStop(t, stop)
		equal(t, j.all(), []string{"0s last/5", "1s plain/1", "2.5s first/3", "4.5s second/3"})
	})
}

// One on its last chance that comes while another suspect runs waits for it, and those that come later wait behind.
func TestLastChanceWaitsForTheOthers(t *testing.T) {
	broken(t, func(t *testing.T, r *rig, d *faulty) {
		d.received = func(d *driver.Delivery) { d.Deliveries = int(d.Headers["deliveries"][0] - '0') }
		deliveries := func(n string) ferry.PublishOption { return ferry.Header("deliveries", n) }
		j := diary{begin: time.Now()}
		w := worker.New(r.broker, worker.Options{Concurrency: 8, MaxDeliveries: 4})
		worker.HandleRaw(w, topic, func(_ context.Context, d *ferry.Delivery) error {
			j.note(d)
			time.Sleep(9500 * time.Millisecond)
			return nil
		})
		stop := start(t, w)
		r.publish(topic, []string{"a"}, deliveries("3"))
		pause(time.Second)
		r.publish(topic, []string{"last"}, deliveries("4"))
		r.publish(topic, []string{"b"}, deliveries("3"))
		r.publish(topic, []string{"plain"}, deliveries("1"))
		pause(time.Minute)
		mustStop(t, stop)
		equal(t, j.all(), []string{"0s a/3", "1s plain/1", "9.5s last/4", "19s b/3"})
	})
}

// A suspect that hangs costs a slot, and those that wait for their turn cost none.
func TestSuspectsDoNotStarveTheRest(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		r.keyed(topic, "k", 30)
		r.publish(topic, numbered(70))
		for range 4 {
			loseAll(r) // all of them on their last chance
		}
		w := worker.New(r.broker, worker.Options{Concurrency: 2, StopTimeout: time.Second})
		hang := make(chan struct{})
		plain := 0
		worker.HandleRaw(w, topic, func(_ context.Context, d *ferry.Delivery) error {
			if d.Deliveries == 1 {
				plain++
				return nil
			}
			<-hang
			return nil
		})
		stop := start(t, w)
		for range 60 {
			r.publish(topic, []string{"plain"})
			pause(time.Second)
		}
		if plain < 59 {
			t.Errorf("%d of 60 plain messages were handled", plain)
		}
		if s := w.Stats(); s.Running != 1 || s.Consumers[0].Waiting > 64 {
			t.Errorf("%+v", s)
		}
		close(hang)
		pause(10 * time.Minute)
		mustStop(t, stop)
		if g := r.group(topic); g.Acked != 160 || g.Dead != 0 {
			t.Errorf("%+v", g)
		}
	})
}

func TestManySuspectsKeepTheirOrder(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		r.keyed(topic, "k", 30)
		r.publish(topic, numbered(70))
		loseAll(r)
		loseAll(r)
		inflight, most := 0, 0
		var mu sync.Mutex
		var keyed journal
		w := worker.New(r.broker, worker.Options{})
		worker.HandleRaw(w, topic, func(_ context.Context, d *ferry.Delivery) error {
			mu.Lock()
			inflight++
			most = max(most, inflight)
			mu.Unlock()
			if d.Key != "" {
				keyed.add("%s", body(d))
			}
			time.Sleep(time.Millisecond)
			mu.Lock()
			inflight--
			mu.Unlock()
			return nil
		})
		stop := start(t, w)
		pause(time.Minute)
		mustStop(t, stop)
		if g := r.group(topic); g.Acked != 100 || most != 1 {
			t.Errorf("%d at once, %+v", most, g)
		}
		var want []string
		for _, n := range numbered(30) {
			want = append(want, "k:"+n)
		}
		equal(t, keyed.all(), want)
		if s := w.Stats().Consumers[0]; s.Released > 500 {
			t.Errorf("%d were given back and forth", s.Released)
		}
	})
}

func TestTooManyDeliveriesAreNotRun(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		suspect(r, 4, "x")
		w := worker.New(r.broker, worker.Options{MaxDeliveries: 3})
		ran := false
		worker.HandleRaw(w, topic, func(context.Context, *ferry.Delivery) error { ran = true; return nil })
		stop := start(t, w)
		pause(time.Second)
		mustStop(t, stop)
		if dl := r.dead(topic); ran || dl.Reason != driver.ReasonMaxDeliveries || dl.Deliveries != 4 {
			t.Errorf("ran: %v, %s after %d deliveries", ran, dl.Reason, dl.Deliveries)
		}
	})
}

// Suspects that wait for their turn go back at once when the worker drains, or when they are revoked.
func TestWaitingSuspectsGoBack(t *testing.T) {
	broken(t, func(t *testing.T, r *rig, d *faulty) {
		r.publish(topic, []string{"a"})
		r.keyed(topic, "k", 3)
		r.publish(topic, []string{"b"})
		loseAll(r)
		loseAll(r)
		var all received
		d.seen = &all
		w := worker.New(r.broker, worker.Options{MaxDeliveries: 3})
		worker.HandleRaw(w, topic, func(context.Context, *ferry.Delivery) error { time.Sleep(4 * time.Second); return nil })
		stop := start(t, w)
		pause(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		going := slices.DeleteFunc(slices.Clone(all.ds), func(d *driver.Delivery) bool { return d.Key == "" })
		begin := time.Now()
		if err := r.memory.Pause(ctx, topic, "", true); err != nil { // or they come again at once
			t.Fatal(err)
		}
		d.revoking(ctx, going)
		if took := time.Since(begin); took != 0 {
			t.Errorf("waiting suspects were kept for %v", took)
		}
		if g := r.group(topic); g.Inflight != 2 || g.Ready != 3 {
			t.Errorf("%+v", g)
		}
		go func() { _ = stop() }()
		pause(time.Second)
		if g := r.group(topic); g.Inflight != 1 || g.Ready != 4 {
			t.Errorf("%+v", g)
		}
		mustStop(t, stop)
		if g := r.group(topic); g.Acked != 1 || g.Ready != 4 || g.Redelivered != 10 {
			t.Errorf("%+v", g)
		}
	})
}

// A suspect whose handler has ended is lost with the process until its outcome is stored: the next one waits for that,
// for two seconds if neither is on its last chance.
func TestSuspectEndsWhenItsOutcomeIsStored(t *testing.T) {
	for _, c := range []struct{ first, second, earliest string }{{"5", "3", "3s"}, {"3", "5", "3s"}, {"3", "3", "2s"}} {
		t.Run(c.first+" then "+c.second, func(t *testing.T) {
			broken(t, func(t *testing.T, r *rig, d *faulty) {
				d.received = func(d *driver.Delivery) { d.Deliveries = int(d.Headers["deliveries"][0] - '0') }
				begin := time.Now()
				d.settle = func([]driver.Settlement) error { return ferry.ErrNotApplied }
				var second time.Duration
				w := worker.New(r.broker, worker.Options{Concurrency: 8})
				worker.HandleRaw(w, topic, func(_ context.Context, d *ferry.Delivery) error {
					if body(d) == "second" {
						second = time.Since(begin)
					}
					return nil
				})
				r.publish(topic, []string{"first"}, ferry.Header("deliveries", c.first))
				r.publish(topic, []string{"second"}, ferry.Header("deliveries", c.second))
				stop := start(t, w)
				pause(3 * time.Second)
				d.set(func() { d.settle = nil })
				pause(time.Minute)
				mustStop(t, stop)
				if earliest, _ := time.ParseDuration(c.earliest); second < earliest || second > earliest+2*time.Second {
					t.Errorf("deliveries %s and %s: the second started after %v, want %v or a little later", c.first, c.second,
						second, earliest)
				}
			})
		})
	}
}
