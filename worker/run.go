package worker

import (
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// runState is where a run is. It is guarded by engine.mu.
type runState uint8

const (
	waiting   runState = iota // may start
	following                 // waits behind others of its key
	starting                  // has a slot, and waits until the broker has recorded that it begins
	running                   // in a handler
	settling                  // its outcome is with the settler
	gone                      // settled, lost, or given back with another message of its key
)

// run is one delivery on its way through the worker, and the context of its handler. One is made for each delivery and
// never used again: a handler may keep its context. Beside live, emits and cancelled it is guarded by engine.mu, and
// while its handler runs what the handler reads of it does not change.
type run struct {
	c *consumer
	d *driver.Delivery

	live  atomic.Pointer[liveContext] // made when somebody asks for it
	emits emission

	cancelled atomic.Bool // by Cancel: it is dropped, unless its handler succeeds

	batch *[]*run // the members of a batch; the run itself then leads it and has no delivery
	next  *run    // in the list it waits in
	lane  *lane   // of its key; nil without one

	arrived, started time.Duration // on the engine's clock
	recording        time.Duration // how long its slot waited for the record of its start
	timeoutAt        time.Duration // when to act on its timeout; zero: never
	leaseUntil       time.Duration
	ttlUntil         time.Duration // when its TTL ends; never: it has none
	fetch            uint64        // number of the fetch that brought it

	state     runState
	overtime  bool // its context has ended, and timeoutAt is when to give it up
	lost      bool // its lease is lost, by the broker's word or by our clock
	refused   bool // by the broker's word
	asking    bool // in consumer.starts
	heard     bool // the broker refused its token after the lease was lost: it knows that we live
	begun     bool // the broker has recorded that it begins, or may have
	recalled  bool // goes back instead of starting
	abandoned bool // settled, or lost, although its handler still runs: a zombie
	doubtful  bool // a settlement of it ended in ErrUnknown
	suspected bool // among suspects.running
	awaited   bool // somebody waits in consumer.leaving for it to be gone
}

// verdict is what came of a run: one settlement, or one for each member of a batch.
type verdict struct {
	one  driver.Settlement
	each []driver.Settlement
	now  time.Duration // when the handler returned
}

// execute runs the handler of r and decides what becomes of it. A panic becomes an error; runtime.Goexit is left to the
// slot, whose goroutine it ends.
func (e *engine) execute(r *run) verdict {
	if e.hooks.Started != nil {
		r.each(func(m *run) { e.hooks.Started(r, m.event()) })
	}
	if r.batch != nil {
		return e.executeBatch(r)
	}
	return e.judge(r, invoke(r))
}

func invoke(r *run) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &crash{value: p, stack: string(debug.Stack())}
		}
	}()
	return r.c.handle(r, r.d)
}

// judge ends the context of a handler that returned err, and decides.
func (e *engine) judge(r *run, err error) verdict {
	v := verdict{now: e.now()}
	took := v.now - r.started
	var cause error
	if err != nil {
		cause = r.cause()
	}
	r.end()
	emits := r.emits.take()
	switch {
	case err == nil:
		v.one = driver.Settlement{Delivery: r.d, Outcome: driver.Ack, Emit: emits}
	case r.cancelled.Load():
		v.one = *dropped(r)
	default:
		v.one = r.c.decide(r, failed{err, cause, took})
		e.logPanicked(r, &v.one, err)
	}
	v.one.Took = took
	e.report(r, v.one.Outcome, err, took)
	return v
}

// report tells the hooks how a handler ended. One whose message goes back uncounted, parked for example, has neither
// succeeded nor failed.
func (e *engine) report(r *run, outcome driver.Outcome, err error, took time.Duration) {
	switch {
	case err == nil && e.hooks.Succeeded != nil:
		ev := r.event()
		ev.Duration = took
		e.hooks.Succeeded(r, ev)
	case err != nil && outcome != driver.Release && e.hooks.Failed != nil:
		ev := r.event()
		ev.Duration, ev.Err = took, err
		e.hooks.Failed(r, ev)
	}
}

// each calls f for every delivery of r: itself, or the members of its batch.
func (r *run) each(f func(*run)) {
	if r.batch == nil {
		f(r)
		return
	}
	for _, m := range *r.batch {
		f(m)
	}
}

func (r *run) event() ferry.Event {
	return ferry.Event{Topic: r.c.topic, Group: r.c.group, Instance: r.c.e.instance, Delivery: r.d}
}

// leave ends the life of r. engine.mu is held.
func (r *run) leave() {
	r.state = gone
	if r.suspected {
		r.c.e.suspectEnded(r)
	}
	if r.awaited {
		r.awaited = false
		close(r.c.leaving[r])
		delete(r.c.leaving, r)
	}
}
