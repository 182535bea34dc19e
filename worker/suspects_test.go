package worker_test

import (
	"context"
	"strings"
	"sync"
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

// suspect publishes a message and loses its lease twice.
func suspect(r *rig, name string, opts ...ferry.PublishOption) {
	r.t.Helper()
	r.publish(topic, []string{name}, opts...)
	loseAll(r)
	loseAll(r)
}

// loseAll claims what is ready and lets the leases run out.
func loseAll(r *rig) {
	r.t.Helper()
	s, err := r.memory.Subscribe(context.Background(), driver.SubscribeOptions{Topic: topic, Instance: "victim", Lease: time.Second, MaxRun: 100})
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := s.Receive(context.Background(), 100); err != nil {
		r.t.Fatal(err)
	}
	pause(2 * time.Second)
	if err := s.Close(context.Background()); err != nil {
		r.t.Fatal(err)
	}
}

func TestSuspectRunsAlone(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		suspect(r, "suspect:0")
		r.publish("other", numbered(4))
		var mu sync.Mutex
		var log journal
		inflight := 0
		w := worker.New(r.broker, worker.Options{Concurrency: 8})
		handle := func(_ context.Context, d *ferry.Delivery) error {
			mu.Lock()
			inflight++
			if strings.HasPrefix(body(d), "suspect") {
				log.add("%s beside %d, %d held", body(d), inflight-1, r.group(topic).Inflight+r.group("other").Inflight-1)
			}
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			inflight--
			if strings.HasPrefix(body(d), "suspect") && inflight > 0 {
				t.Errorf("%d started while a suspect ran", inflight)
			}
			return nil
		}
		worker.HandleRaw(w, "other", handle)
		worker.HandleRaw(w, topic, handle)
		stop := start(t, w)
		r.publish(topic, numbered(20))
		r.publish("other", numbered(20))
		pause(time.Minute)
		mustStop(t, stop)
		equal(t, log.all(), []string{"suspect:0 beside 0, 0 held"})
		if a, b := r.group(topic), r.group("other"); a.Acked != 21 || b.Acked != 24 || a.Redelivered != 2 {
			t.Errorf("%+v\n%+v", a, b)
		}
	})
}

func TestManySuspectsRunOneByOne(t *testing.T) {
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

// A handler that hangs keeps a suspect from running, but not everything else.
func TestSuspectDoesNotStopTheWorkerForever(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		w := worker.New(r.broker, worker.Options{Concurrency: 4, StopTimeout: 5 * time.Second})
		hang := make(chan struct{})
		var log journal
		worker.HandleRaw(w, topic, func(_ context.Context, d *ferry.Delivery) error {
			log.add("%s", body(d))
			if body(d) == "hang" {
				<-hang
			}
			return nil
		})
		suspect(r, "suspect")
		r.publish(topic, []string{"hang"}, ferry.WithPriority(ferry.Urgent))
		stop := start(t, w)
		pause(7 * time.Second)
		r.publish(topic, []string{"other"})
		pause(time.Second)
		equal(t, log.all(), []string{"hang", "other"})
		close(hang)
		pause(time.Minute)
		equal(t, log.all(), []string{"hang", "other", "suspect"})
		mustStop(t, stop)
	})
}

func TestTooManyDeliveriesAreNotRun(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		r.publish(topic, []string{"x"})
		for range 3 {
			loseAll(r)
		}
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
