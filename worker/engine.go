package worker

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/unique"
)

// engine is a worker at work. Everything that changes while it works is guarded by its one mutex, which is held for
// short steps only and never while anything is called or waited for.
//
// Its goroutines: for each consumer a fetcher, a settler and a renewer; one watchdog; a scaler, if there is scaling;
// the slots that run handlers; and the caller of Run, who drains it in the end and waits for all of them.
type engine struct {
	broker   *ferry.Broker
	caps     driver.Capabilities
	hooks    ferry.Hooks
	log      *slog.Logger
	names    *unique.Keeper // of unique ids
	options  Options
	instance string

	base    context.Context // the values of Run's context, without its end
	working context.Context // ends when the drain begins
	ended   *liveContext    // the context of handlers that returned and never asked for one
	epoch   time.Time       // zero of the engine's clock

	consumers []*consumer
	fetching  sync.WaitGroup // fetchers
	serving   sync.WaitGroup // settlers, renewers, the watchdog
	leaving   sync.WaitGroup // subscriptions that drain or close

	lines logLimit

	mu        sync.Mutex
	emergency *emergencies // nil: none
	pool      pool
	watch     watchdog
	draining  bool
	closing   bool   // everything is settled, or given up: goroutines end
	active    int    // runs in a handler, zombies not counted
	wants     demand // of all consumers
	parked    parked
	zombies   int
	worked    time.Duration // by all handlers that returned
	unsettled int           // outcomes with the settlers
	suspects  suspects
	failed    error
	unclosed  []error       // what closing subscriptions said
	progress  chan struct{} // wakes the drainer

	stop     context.CancelCauseFunc // ends Run
	standing int                     // subscriptions
	ready    chan struct{}           // closed when all of them stand
}

func newEngine(ctx context.Context, w *Worker) *engine {
	base := context.WithoutCancel(ctx)
	e := &engine{
		broker:   w.broker,
		caps:     w.broker.Driver().Capabilities(),
		hooks:    w.broker.Hooks(),
		log:      w.log,
		names:    unique.New(w.broker.Driver()),
		options:  w.options,
		instance: w.options.Instance,
		base:     base,
		ended:    newEndedContext(base, errReturned),
		epoch:    time.Now(),
		progress: make(chan struct{}, 1),
		ready:    w.ready,

		emergency: newEmergencies(w.options.Emergency),
	}
	e.pool.wake.L = &e.mu
	e.pool.limit = w.options.Concurrency
	e.watch.kick = make(chan struct{}, 1)
	for _, h := range w.handlers {
		e.consumers = append(e.consumers, newConsumer(e, h, w.middleware))
	}
	return e
}

// now is the time since the engine was made, by the monotonic clock.
func (e *engine) now() time.Duration { return time.Since(e.epoch) }

// run works until ctx ends or the engine fails, then drains.
func (e *engine) run(ctx context.Context) (err error) {
	if e.hooks.WorkerStarted != nil {
		e.hooks.WorkerStarted(e.base, ferry.Event{Instance: e.instance})
	}
	if e.hooks.WorkerStopped != nil {
		defer func() { e.hooks.WorkerStopped(e.base, ferry.Event{Instance: e.instance, Err: err}) }()
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	e.stop, e.working = stop, ctx
	work, endWork := context.WithCancel(e.base) // settling and renewing outlive ctx
	defer endWork()

	e.serving.Go(func() { e.watchdog() })
	if e.options.Scaling.on() {
		e.serving.Go(func() { e.scale(ctx) })
	}
	if e.emergency != nil {
		e.serving.Go(func() { e.keepEmergencies(work) })
	}
	for _, c := range e.consumers {
		e.fetching.Go(func() { c.fetch(ctx, work) })
	}
	<-ctx.Done()
	return e.drain(endWork)
}

// fail ends Run with err, as if its context had ended.
func (e *engine) fail(err error) {
	e.mu.Lock()
	if e.failed == nil {
		e.failed = err
	}
	e.mu.Unlock()
	e.stop(err)
}

// failIfClosed ends Run if one of the broker's answers says that it is closed: no outcome can be accepted any more.
func (c *consumer) failIfClosed(errs []error) {
	i := slices.IndexFunc(errs, closed)
	if i < 0 {
		return
	}
	c.e.mu.Lock()
	left := c.left
	c.e.mu.Unlock()
	if !left {
		c.e.fail(errs[i])
	}
}

// closed reports whether err says that the broker is closed.
func closed(err error) bool { return errors.Is(err, ferry.ErrClosed) }

// permanent reports whether trying again cannot help.
func permanent(err error) bool {
	for _, kind := range [...]error{ferry.ErrInvalid, ferry.ErrUnsupported, ferry.ErrRefused, ferry.ErrConflict,
		ferry.ErrNotFound, ferry.ErrTooLarge, ferry.ErrClosed} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}
