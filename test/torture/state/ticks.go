package state

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/schedule"
)

const (
	schedules    = 40 // each of which ticks every second
	schedulers   = 3
	tickTopic    = "torture.ticks"
	killEvery    = 2 * time.Second
	killKafka    = 15 * time.Second // a group waits a session for a member that died, and more for several
	catchUpWhile = 8 * time.Minute  // a busy machine may take that long
)

// runTicks kills whoever runs schedules until the load is over, and then looks which ticks were published.
func runTicks(ctx context.Context, r *run) error {
	begun, err := r.killSchedulers(ctx)
	if err != nil {
		return err
	}
	b, err := r.backend.open(ctx)
	if err != nil {
		return err
	}
	end := time.Now()
	fires, err := r.published(ctx, b, end)
	if err = errors.Join(err, b.Close(context.WithoutCancel(ctx))); err != nil {
		return err
	}
	j := tickJudge{begun: begun, ended: end, late: r.tolerated(b), kills: r.times(kindHarm), stalled: r.stalledBetween}
	if r.o.Broker == "disk" {
		j.running = r.times(kindRunning)
	}
	j.judge(fires)
	for _, p := range j.problems {
		r.accuse("%s", p)
	}
	r.figure("%d ticks of %d schedules, published after their time: %s", len(fires), schedules, spread(j.lateness))
	if len(j.twice) > 0 {
		r.figure("%d kills came when a tick was taken for the second time", len(j.twice))
	}
	return nil
}

// tolerated is how late a tick may be: the lease of a taker that was killed, and a second.
func (r *run) tolerated(b *ferry.Broker) time.Duration {
	switch r.o.Broker {
	case "disk": // a kill ends leases too
		return time.Second
	case "kafka":
		// whoever is killed while its group waits for another that was killed is given partitions once more, for a session
		return 2*b.Driver().Capabilities().MinLease + 3*time.Second
	}
	return max(3*time.Second, b.Driver().Capabilities().MinLease) + time.Second
}

// stalledBetween is for how long the machine did not let somebody run: whoever that was may have had the tick.
func (r *run) stalledBetween(from, to time.Time) time.Duration {
	return stalled(r.tape.all(), r.stamp(from), r.stamp(to), func(string) bool { return true })
}

// times is when events of a kind were.
func (r *run) times(kind Kind) (at []time.Time) {
	for _, e := range r.tape.all() {
		if e.Kind == kind {
			at = append(at, r.time(e.At))
		}
	}
	return at
}

// killSchedulers kills one after the other, and starts it again. It returns when the first had declared all schedules.
func (r *run) killSchedulers(ctx context.Context) (begun time.Time, err error) {
	random, lives := r.random(1), 0
	start := func(i int) (actor, error) {
		lives++
		return r.start(order{Name: life("scheduler", i, lives), Role: "scheduler", Seed: random.Uint64()})
	}
	processes, every := schedulers, killEvery
	switch r.o.Broker {
	case "disk":
		processes = 1
	case "kafka":
		every = killKafka
	}
	actors := make([]actor, processes)
	for i := range actors {
		if actors[i], err = start(i); err != nil {
			return begun, err
		}
	}
	if !r.awaitRunning(ctx, actors[0].name()) {
		return begun, errors.New("nobody runs schedules")
	}
	begun = time.Now()
	for end := begun.Add(r.o.Load); time.Now().Before(end) && sleep(ctx, untilKill(random, every)); {
		i, how := random.IntN(processes), killed
		if r.backend.shared != nil && random.IntN(2) == 0 {
			how = stopped
		}
		r.harmed(actors[i].name(), how)
		if how == stopped {
			actors[i].stop()
		} else {
			actors[i].kill()
		}
		if actors[i], err = start(i); err != nil {
			return begun, err
		}
		r.awaitRunning(ctx, actors[i].name()) // so that somebody runs when the next is killed
	}
	r.end()
	return begun, nil
}

// untilKill is how long the next kill is away. Half of them come while the ticks of a second are taken.
func untilKill(random *rand.Rand, every time.Duration) time.Duration {
	d := between(random, every*3/4, every*5/4)
	if random.IntN(2) == 0 {
		d = time.Until(time.Now().Add(d).Truncate(time.Second).Add(between(random, 0, 60*time.Millisecond)))
	}
	return d
}

// awaitRunning waits until a process is ready.
func (r *run) awaitRunning(ctx context.Context, name string) bool {
	timer := time.NewTimer(time.Minute)
	defer timer.Stop()
	for seen := 0; ; {
		events, more := r.tape.after(seen)
		seen += len(events)
		for _, e := range events {
			if e.Kind == kindRunning && e.Process == name {
				return true
			}
		}
		select {
		case <-more:
		case <-ctx.Done():
			return false
		case <-timer.C:
			return false
		}
	}
}

// schedule declares all schedules, as every instance of a program does when it starts, and runs them.
func (m *member) schedule(ctx context.Context) error {
	s, err := schedule.New(m.b, schedule.Options{})
	if err != nil {
		return err
	}
	for i := range schedules {
		name := fmt.Sprintf("s%02d", i)
		message := &ferry.Message{Topic: tickTopic, Body: []byte(name), ContentType: "text/plain"}
		err := s.Put(ctx, schedule.Schedule{Name: name, Spec: "@every 1s", Missed: schedule.All, Message: message})
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
	}
	m.record(Event{Kind: kindRunning})
	return s.Run(ctx)
}

// published runs schedules until all are beyond a time, and returns what they have published.
func (r *run) published(ctx context.Context, b *ferry.Broker, beyond time.Time) (fires []fire, err error) {
	s, err := schedule.New(b, schedule.Options{})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, catchUpWhile)
	defer cancel()
	running, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- s.Run(running) }()
	err = catchUp(ctx, s, beyond)
	stop()
	if err = errors.Join(err, <-done); err != nil {
		return nil, err
	}
	for q := (driver.Query{Topic: tickTopic, Group: driver.DefaultGroup, State: driver.StateReady,
		Limit: driver.MaxLimit}); ; {
		p, err := b.Driver().Browse(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, e := range p.Entries {
			tick, err := time.Parse(time.RFC3339, e.Headers[schedule.HeaderTick])
			if err != nil {
				return nil, err
			}
			fires = append(fires, fire{e.Headers[schedule.HeaderName], tick, e.PublishedAt})
		}
		if q.Cursor = p.Next; p.Next == "" {
			return fires, nil
		}
	}
}

// catchUp waits until the next tick of every schedule is after a time.
func catchUp(ctx context.Context, s *schedule.Scheduler, beyond time.Time) error {
	for behind := schedules; behind > 0; {
		if !sleep(ctx, 100*time.Millisecond) {
			return fmt.Errorf("%d of %d schedules are behind after %v", behind, schedules, catchUpWhile)
		}
		p, err := s.List(ctx, schedule.Query{})
		if err != nil {
			return err
		}
		behind = schedules
		for _, st := range p.Schedules {
			if st.Next.After(beyond) {
				behind--
			}
		}
	}
	return nil
}
