package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/instance"
)

// Options of a Worker. The zero value is a good one.
type Options struct {
	// Concurrency is how many handlers run at once, over all topics. Defaults to 16. With Scaling it is where their
	// number begins, and defaults to Scaling.Min.
	Concurrency int
	// Scaling lets their number follow the load. Defaults to none.
	Scaling Scaling
	// Instance names this worker in histories and the console. Defaults to host, process id and a random part.
	Instance string
	// Lease is how long a message stays ours without word from us. Defaults to what the broker recommends.
	Lease time.Duration
	// StopTimeout is how long handlers may go on after the context of Run ended. Defaults to 25 seconds, which
	// leaves time to settle before Kubernetes kills a pod (30 seconds).
	StopTimeout time.Duration
	// MaxAttempts is how often a message is tried in all before it is a dead letter, ferry.Unlimited for no end. Defaults
	// to 10.
	MaxAttempts int
	// MaxDeliveries is how many processes a message may cost: one that was lost as often while its handler ran, and whose
	// holder was never heard of again, becomes a dead letter. Defaults to 5, and is at least 3.
	MaxDeliveries int
	// Retry says when a failed message is tried again. Defaults to ferry.Exponential(time.Second, 10*time.Minute).
	Retry ferry.RetryPolicy
	// Emergency is where dead letters go that the broker does not take. Defaults to the broker alone.
	Emergency Emergency
	// Logger gets what nobody is told otherwise: panics, failed attempts, dead letters, lost leases, a broker that is
	// away. Of each kind at most 3 lines are written in a second, and the others counted. It never gets a body. Defaults
	// to that of the broker.
	Logger *slog.Logger
}

// Worker runs handlers for the messages of any number of topics.
type Worker struct {
	broker  *ferry.Broker
	options Options
	log     *slog.Logger

	mu         sync.Mutex
	handlers   []*registration
	middleware []Middleware
	problems   []error // of options and registrations
	began      bool
	engine     *engine // once running

	ready chan struct{} // closed when every subscription stands
}

// New returns a worker on a broker. What is wrong with its options is returned by Check and Run.
func New(b *ferry.Broker, o Options) *Worker {
	w := &Worker{broker: b, problems: o.check(b), log: o.Logger, ready: make(chan struct{})}
	if w.log == nil {
		w.log = slog.Default()
		if b != nil {
			w.log = b.Logger()
		}
	}
	w.options = o.withDefaults()
	return w
}

// Use wraps every handler in middleware. The first is the outermost. Each message of a batch passes it by itself: see
// HandleBatch.
func (w *Worker) Use(m ...Middleware) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range m {
		if one == nil {
			w.problems = append(w.problems,
				driver.NewError(ferry.ErrInvalid, "a middleware of the worker is nil", "give it a function", nil))
			continue
		}
		w.middleware = append(w.middleware, one)
	}
}

// Run handles messages until ctx ends, then drains: it stops fetching, gives back what has not started, lets handlers
// finish until StopTimeout, settles, and returns nil. It returns an error at once if something is wrong with the
// options or a registration, if the broker refuses a subscription or is closed, and in the end if handlers that
// ignore their context had to be abandoned (ErrAbandoned). A broker that is away for a time does not end it.
func (w *Worker) Run(ctx context.Context) error {
	e, err := w.begin(ctx)
	if err != nil {
		return err
	}
	return e.run(ctx)
}

func (w *Worker) begin(ctx context.Context) (*engine, error) {
	if w == nil {
		return nil, errNilWorker
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.began {
		return nil, driver.NewError(ferry.ErrInvalid, "the worker runs, or has run", "make a new one with worker.New", nil)
	}
	if err := w.wrong(); err != nil {
		return nil, err
	}
	w.engine = newEngine(ctx, w) // which panics without a context: then it has not begun
	w.began = true
	return w.engine, nil
}

var errNilWorker = driver.NewError(ferry.ErrInvalid, "the worker is nil", "make one with worker.New", nil)

// Check returns what is wrong with the options and with the registrations so far: what Run would return for it, before
// anything runs. A handler that was registered after Run began is among it.
func (w *Worker) Check() error {
	if w == nil {
		return errNilWorker
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wrong()
}

// wrong joins what is wrong. w.mu is held.
func (w *Worker) wrong() error {
	problems := slices.Clone(w.problems)
	if len(w.handlers) == 0 {
		problems = append(problems, driver.NewError(ferry.ErrInvalid, "the worker has no handler",
			"register one with worker.Handle", nil))
	}
	return errors.Join(problems...)
}

// Ready returns a channel that is closed when every subscription stands: from then on each group gets what is
// published. While the broker is away that takes as long, and if Run returns before, it stays open: wait for both.
func (w *Worker) Ready() <-chan struct{} {
	if w == nil {
		return nil
	}
	return w.ready
}

func (o Options) check(b *ferry.Broker) []error {
	var errs []error
	bad := func(text, hint string) { errs = append(errs, driver.NewError(ferry.ErrInvalid, text, hint, nil)) }
	if b == nil {
		bad("the broker of the worker is nil", "open one first, with open.URL for example")
	}
	if o.Concurrency < 0 || o.MaxAttempts < 0 || o.Lease < 0 || o.StopTimeout < 0 {
		bad("Concurrency, MaxAttempts, Lease or StopTimeout is negative", "leave it zero for the default")
	}
	if err := o.Retry.Check(); err != nil {
		errs = append(errs, err)
	}
	o.Emergency.check(bad)
	if o.MaxDeliveries != 0 && o.MaxDeliveries < suspectDeliveries {
		bad(fmt.Sprintf("MaxDeliveries %d is too small to tell a killer from its neighbours", o.MaxDeliveries),
			fmt.Sprintf("use at least %d", suspectDeliveries))
	}
	return append(errs, o.Scaling.check(o.Concurrency)...)
}

// most is how many handlers may ever run at once.
func (o Options) most() int { return max(o.Concurrency, o.Scaling.Max) }

func (o Options) withDefaults() Options {
	o.Scaling = o.Scaling.withDefaults()
	if o.Concurrency == 0 {
		o.Concurrency = 16
		if o.Scaling.on() {
			o.Concurrency = o.Scaling.Min
		}
	}
	if o.Instance == "" {
		o.Instance = instance.Unique()
	}
	if o.StopTimeout == 0 {
		o.StopTimeout = 25 * time.Second
	}
	if o.MaxAttempts == 0 {
		o.MaxAttempts = 10
	}
	if o.MaxDeliveries == 0 {
		o.MaxDeliveries = 5
	}
	o.Retry = resolvePolicy(o.Retry)
	return o
}
