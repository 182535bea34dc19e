// Package state tortures what lies beside the messages: leaders, schedules and named values. Processes that use them
// are killed, paused and cut off; then what they wrote down is judged.
//
//	state    options, what can be run, the report
//	backend  brokers and their servers
//	actor    a process that can be harmed: process, or local inside the harness
//	member   what such a process does
//	tape     what happened, of all processes in one order of arrival
//	leader, ticks, values   the three runs; …_judge   their judges, pure functions over the tape
package state

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/test/torture/history"
)

// Options of a run.
type Options struct {
	Broker string // one of Brokers
	Fault  string // one of Faults
	Seed   uint64
	// Load is for how long things are harmed.
	Load time.Duration
	// TTL of leases of leaders. Defaults to five seconds, as everywhere.
	TTL time.Duration
	// Groups of leaders. Defaults to six.
	Groups int
	// Dir, if it is named, gets the tape.
	Dir string
	// URL is a broker that runs already. Defaults to one that is started. Its servers are not harmed.
	URL string
}

// Fault is one of the runs.
type Fault struct {
	Name, Help string
	// Least is the shortest load in which it shows anything.
	Least time.Duration
	run   func(ctx context.Context, r *run) error
}

// Faults returns all runs.
func Faults() []Fault {
	return []Fault{
		{"leader", "leaders that write under their lease are killed, paused and cut off", 25 * time.Second, runLeaders},
		{"schedules", "whoever runs schedules is killed every two seconds, on Kafka every fifteen", 20 * time.Second,
			runTicks},
		{"values", "writers of named values are killed, paused and cut off", 10 * time.Second, runValues},
	}
}

// Brokers returns what can be tortured.
func Brokers() []string { return []string{"memory", "disk", "redis", "redisstream", "kafka"} }

// Report is what a run came to.
type Report struct {
	Broker, Fault string
	Seed          uint64
	Kills         int
	Pauses        int
	Cuts          int
	// Figures are lines about what was measured.
	Figures  []string
	Problems []string
}

// OK reports whether every promise was kept.
func (r *Report) OK() bool { return len(r.Problems) == 0 }

// Verdict is the report as text.
func (r *Report) Verdict() string {
	word := "clean"
	if !r.OK() {
		word = fmt.Sprintf("VIOLATED: %d promises", len(r.Problems))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-12s %-10s seed %d: %s, %d kills, %d pauses, %d cuts", r.Fault, r.Broker, r.Seed, word, r.Kills,
		r.Pauses, r.Cuts)
	for _, line := range r.Figures {
		fmt.Fprintf(&b, "\n  %s", line)
	}
	const most = 20
	for _, p := range r.Problems[:min(len(r.Problems), most)] {
		fmt.Fprintf(&b, "\n  broken: %s", p)
	}
	if n := len(r.Problems) - most; n > 0 {
		fmt.Fprintf(&b, "\n  and %d more", n)
	}
	return b.String()
}

// run is a run under way.
type run struct {
	o       Options
	backend *backend
	tape    *tape
	begun   time.Time
	origin  int64 // what the clock of the tape showed then

	mu     sync.Mutex
	actors []actor
	report Report
}

// Run tortures a broker and judges. The error says that the run itself failed.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	i := slices.IndexFunc(Faults(), func(f Fault) bool { return f.Name == o.Fault })
	if i < 0 || !slices.Contains(Brokers(), o.Broker) {
		return nil, fmt.Errorf("there is no run %q of %q", o.Fault, o.Broker)
	}
	o = o.withDefaults()
	r := &run{o: o, report: Report{Broker: o.Broker, Fault: o.Fault, Seed: o.Seed}, begun: time.Now()}
	r.origin = r.clock()
	if r.tape, err = newTape(o.Dir); err != nil {
		return nil, err
	}
	if r.backend, err = openBackend(o); err != nil {
		return nil, err
	}
	stop, err := r.watch(ctx)
	if err == nil {
		err = Faults()[i].run(ctx, r)
	}
	r.end()
	return &r.report, errors.Join(err, stop(), r.backend.close(), r.tape.close())
}

// watch notes what the machine does not let happen in time, until it is stopped. In virtual time there is nothing of
// that.
func (r *run) watch(ctx context.Context) (stop func() error, err error) {
	ctx, cancel := context.WithCancel(ctx)
	var noting sync.WaitGroup
	var probe *ferry.Broker
	stop = func() error {
		cancel()
		noting.Wait()
		if probe == nil {
			return nil
		}
		return probe.Close(context.WithoutCancel(ctx))
	}
	if r.backend.shared != nil {
		return stop, nil
	}
	noting.Go(func() { noteStalls(ctx, r.clock, r.note) })
	if r.o.Broker == "disk" { // whose one process says when it is held up
		return stop, nil
	}
	if probe, err = r.backend.open(ctx); err == nil {
		noting.Go(func() { noteDelays(ctx, probe, r.clock, r.note) })
	}
	return stop, err
}

func (o Options) withDefaults() Options {
	if o.TTL == 0 {
		o.TTL = 5 * time.Second
	}
	if o.Groups == 0 {
		o.Groups = 6
	}
	return o
}

// clock is that of the tape: one for all processes, and the virtual one where everything is in this process.
func (r *run) clock() int64 { return clockOf(r.o.Broker) }

func clockOf(broker string) int64 {
	if broker == "memory" {
		return time.Now().UnixNano()
	}
	return history.Now()
}

// time is when a stamp of the tape was, and stamp what the tape showed at a time.
func (r *run) time(stamp int64) time.Time { return r.begun.Add(time.Duration(stamp - r.origin)) }
func (r *run) stamp(t time.Time) int64    { return r.origin + int64(t.Sub(r.begun)) }

// note writes an event of the harness itself.
func (r *run) note(e Event) {
	e.At, e.Process = r.clock(), harness
	r.tape.add(e)
}

func (r *run) random(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(r.o.Seed, stream)) }

// harmed notes that a process is being harmed.
func (r *run) harmed(process, how string) {
	r.tape.add(Event{At: r.clock(), Kind: kindHarm, Process: process, Note: how})
	r.mu.Lock()
	defer r.mu.Unlock()
	switch how {
	case killed, stopped:
		r.report.Kills++
	case paused:
		r.report.Pauses++
	case cutOff, held, slowed:
		r.report.Cuts++
	}
}

// restartServer kills the server of a broker and starts it again, in the middle of the load. Nothing is lost by that.
func (r *run) restartServer(ctx context.Context) error {
	if r.backend.server == nil || !sleep(ctx, r.o.Load/2) {
		return nil
	}
	r.harmed("", restarted)
	defer r.healed("")
	r.backend.server.Kill()
	return r.backend.server.Restart()
}

// disturbed reports whether the server was restarted, or not yet used again, since a stamp.
func (r *run) disturbed(since int64) bool {
	var healed int64
	for _, e := range r.tape.all() {
		if e.Process == "" && e.Kind == kindHarm {
			healed = 1<<63 - 1
		}
		if e.Process == "" && e.Kind == kindHeal {
			healed = e.At + int64(recovery)
		}
	}
	return healed > since
}

func (r *run) healed(process string) {
	r.tape.add(Event{At: r.clock(), Kind: kindHeal, Process: process})
}

func (r *run) accuse(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Problems = append(r.report.Problems, fmt.Sprintf(format, args...))
}

func (r *run) figure(format string, args ...any) {
	r.report.Figures = append(r.report.Figures, fmt.Sprintf(format, args...))
}

// start begins the life of an actor, who is killed when the run ends.
func (r *run) start(o order) (actor, error) {
	o.Broker = r.o.Broker
	if o.URL == "" {
		o.URL = r.backend.url
	}
	var a actor
	var err error
	if r.backend.shared != nil {
		a, err = startLocal(o, r.backend.shared, r.tape.add)
	} else {
		a, err = startProcess(o, r.tape.add)
	}
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.actors = append(slices.DeleteFunc(r.actors, actor.gone), a)
	return a, nil
}

// end kills whoever still lives.
func (r *run) end() {
	r.mu.Lock()
	actors := r.actors
	r.mu.Unlock()
	for _, a := range actors {
		a.kill()
	}
}

// sleep waits, and reports false if ctx ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// between is a random time of a span.
func between(rnd *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(rnd.Int64N(int64(most-least)+1))
}

// spread tells median, p99 and largest of times.
func spread(ds []time.Duration) string {
	if len(ds) == 0 {
		return "none"
	}
	ds = slices.Sorted(slices.Values(ds))
	at := func(q float64) time.Duration {
		return ds[min(len(ds)-1, int(q*float64(len(ds))))].Round(time.Millisecond)
	}
	return fmt.Sprintf("p50 %v, p90 %v, p99 %v, at most %v (%d)", at(0.5), at(0.9), at(0.99), at(1), len(ds))
}
