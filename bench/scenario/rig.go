package scenario

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ferrymq/ferry/bench/load"
	"github.com/ferrymq/ferry/bench/meter"
	"github.com/ferrymq/ferry/bench/system"
)

// window bounds how far publishers run ahead of handlers where both run at once, so that a run measures a steady flow
// and not how fast a backlog grows. With 512 and 2,048 every system needed less processor time for a message than with
// 16,384, or as much.
const window = 1024

// rig is a session with its callers and its ledger.
type rig struct {
	session   system.Session
	bodies    *load.Bodies
	ledger    *load.Ledger
	callers   []*caller
	published atomic.Int64 // about; callers add to it now and then
	consumer  system.Consumer

	usageErr error // the first failed look at the servers
	partly   bool  // checked ended before all had come back
}

// rigOptions shape a rig.
type rigOptions struct {
	bodySize int
	callers  int
	most     int       // messages in all
	key      keyChoice // nil: no keys
	system.Options
}

func newRig(ctx context.Context, env Env, sys system.System, o rigOptions) (*rig, error) {
	o.Ordered = o.key != nil
	if o.Capacity == 0 {
		o.Capacity = o.most
	}
	session, err := sys.Open(ctx, o.Options)
	if err != nil {
		return nil, err
	}
	r := &rig{session: session, bodies: load.NewBodies(o.bodySize, env.Seed)}
	each := o.most / o.callers
	r.ledger = load.NewLedger(r.bodies, o.callers, each)
	for i := range o.callers {
		r.callers = append(r.callers, &caller{rig: r, number: i, limit: each, key: o.key, publisher: session.Publisher()})
	}
	return r, nil
}

// close stops the consumer and ends the session. Its errors join err.
func (r *rig) close(ctx context.Context, err *error) {
	if r.consumer != nil {
		*err = errors.Join(*err, r.consumer.Stop(ctx))
	}
	*err = errors.Join(*err, r.session.Close())
}

// consume starts handlers that note every message. Each calls work first, if there is any: its error has the message
// tried again, and noted only when it succeeds.
func (r *rig) consume(ctx context.Context, o system.ConsumeOptions,
	work func(seq uint64, stamp time.Time) error) (err error) {
	handle := func(body []byte) error {
		r.ledger.Note(body)
		return nil
	}
	if work != nil {
		handle = func(body []byte) error {
			err := work(r.bodies.Look(body))
			if err == nil {
				r.ledger.Note(body)
			}
			return err
		}
	}
	r.consumer, err = r.session.Consume(ctx, o, handle)
	return err
}

// publishFor lets every caller publish for a while, and returns how many messages that were.
func (r *rig) publishFor(ctx context.Context, d time.Duration, style publishStyle, ahead int) (int, error) {
	var stop atomic.Bool
	timer := time.AfterFunc(d, func() { stop.Store(true) })
	defer timer.Stop()
	return r.publish(func(c *caller) error { return style(ctx, c, &stop, ahead) })
}

// warmUp publishes for a quarter of the time, and at most a quarter of the messages, before anything is measured.
func (r *rig) warmUp(ctx context.Context, env Env, style publishStyle, ahead int) error {
	for _, c := range r.callers {
		c.limit /= 4
	}
	_, err := r.publishFor(ctx, env.Size.Run/4, style, ahead)
	for _, c := range r.callers {
		c.limit *= 4
	}
	return err
}

// fill publishes a backlog: all the messages the callers may, or what a slow system takes in the time there is.
func (r *rig) fill(ctx context.Context, env Env, sys system.System) (int, error) {
	return r.publishFor(ctx, env.Size.Fill, filling(sys), 0)
}

// publishAll lets the callers publish all the messages they may.
func (r *rig) publishAll(ctx context.Context, style publishStyle) (int, error) {
	return r.publish(func(c *caller) error { return style(ctx, c, new(atomic.Bool), 0) })
}

func (r *rig) publish(run func(*caller) error) (int, error) {
	before := r.ledger.Total()
	errs := make([]error, len(r.callers))
	var all sync.WaitGroup
	for i, c := range r.callers {
		all.Go(func() {
			errs[i] = run(c)
			r.ledger.Published(c.number, c.next)
		})
	}
	all.Wait()
	return r.ledger.Total() - before, errors.Join(errs...)
}

// drained waits until all that was published is handled and acknowledged.
func (r *rig) drained(ctx context.Context) error {
	if err := r.ledger.Wait(ctx, r.ledger.Total()); err != nil {
		return err
	}
	return r.session.Settled(ctx)
}

// checked waits until all that was published is handled and acknowledged. Where that takes long and a part is enough,
// it ends after as long as the system was published to: slow ones would drain for half a minute in every round.
func (r *rig) checked(ctx context.Context, env Env) error {
	if !env.Sampled {
		return r.drained(ctx)
	}
	part, cancel := context.WithTimeout(ctx, env.Size.Run)
	defer cancel()
	if err := r.ledger.Wait(part, r.ledger.Total()); err != nil {
		r.partly = true
		return ctx.Err()
	}
	return r.session.Settled(ctx)
}

// start begins to measure.
func (r *rig) start() *meter.Span {
	return meter.Start(func() time.Duration { return r.usage().CPU })
}

// usage looks at the servers and files. An error spoils the result.
func (r *rig) usage() system.Usage {
	u, err := r.session.Usage()
	if err != nil && r.usageErr == nil {
		r.usageErr = err
	}
	return u
}

// result is a rate with what belongs to it, and the verdict over the whole run.
func (r *rig) result(n int, reading meter.Reading) (Result, error) {
	res := Result{Messages: n, Reading: reading, Verdict: r.ledger.Verdict(), Values: map[string]float64{}}
	if r.partly {
		res.Verdict = res.Verdict.Partial()
	}
	if n > 0 {
		res.Values[rate.Name] = float64(n) / reading.Elapsed.Seconds()
		res.Values[allocs.Name] = float64(reading.Allocs) / float64(n)
		_, res.Values[server.Name] = res.CPUPerMessage()
	}
	return res, errors.Join(res.Verdict.Err(), r.usageErr)
}
