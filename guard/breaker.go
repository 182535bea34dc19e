package guard

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/worker"
)

// BreakerOptions of a Breaker.
type BreakerOptions struct {
	// Name is the downstream: "billing". With a Key there is a breaker for each key: "billing/eu".
	Name     string
	Key      KeyFunc
	Template string
	// Failures in a row open it. Defaults to 5.
	Failures int
	// Ratio opens it, too, when this share of at least MinRequests messages within Interval failed. Zero: does not.
	Ratio       float64
	MinRequests int           // Defaults to 20.
	Interval    time.Duration // Defaults to 1 minute.
	// Open is how long it stays open before it is half open and lets probes pass. Defaults to 30 s.
	Open time.Duration
	// Probes is how many messages a half-open breaker lets pass, in each process. If all succeed it closes; if one fails
	// it opens again. Defaults to 1.
	Probes int
	// IsFailure says which errors are failures of the downstream. Defaults to those of ClassTransient: an answer of 4xx
	// is a success as far as the breaker is concerned, and 429, cancelled, parked and dropped messages do not count.
	IsFailure func(err error) bool
	// OnOpen is what becomes of a message that may not pass. Defaults to Park.
	OnOpen Policy
	// MaxPark is how long a message is parked at most before it is looked at again. Defaults to DefaultMaxPark.
	MaxPark time.Duration
	// MaxBreakers bounds how many there are by key; idle ones are forgotten. Defaults to 10,000.
	MaxBreakers int
	// Store shows the state to other processes, and lets them force it. Instance names this one. Without a store only
	// this process can. Defaults to none, and a random name.
	Store    Store
	Instance string
	Hook     Hook
}

// Breaker leaves a failing downstream alone: after some failures it opens and no message passes, until some probes
// show that it has recovered. Messages wait meanwhile, without burning attempts. Failures are counted in each process.
type Breaker struct {
	o    BreakerOptions
	key  KeyFunc // nil: there is only one
	sync *breakerSync

	mu       sync.RWMutex
	circuits map[string]*circuit
	only     *circuit // without a key
	counters
}

// NewBreaker returns a breaker, or a family of them by key.
func NewBreaker(o BreakerOptions) (*Breaker, error) {
	if err := o.resolve(); err != nil {
		return nil, err
	}
	b := &Breaker{o: o, circuits: map[string]*circuit{}}
	if o.Key != nil || o.Template != "" {
		key, err := chooseKey("breaker "+o.Name, o.Key, o.Template)
		if err != nil {
			return nil, err
		}
		b.key = key
	} else {
		b.only = b.newCircuit(o.Name)
		b.circuits[o.Name] = b.only
	}
	b.sync = newBreakerSync(b)
	return b, nil
}

func (o *BreakerOptions) resolve() error {
	bad := func(hint, format string, args ...any) error {
		return driver.NewError(driver.ErrInvalid, fmt.Sprintf("breaker %q: ", o.Name)+fmt.Sprintf(format, args...), hint, nil)
	}
	if err := driver.CheckName("breaker", o.Name); err != nil {
		return err
	}
	switch {
	case o.Failures < 0 || o.Probes < 0 || o.MinRequests < 0 || o.MaxBreakers < 0:
		return bad("leave it zero for the default", "a number is negative")
	case o.Open < 0 || o.Interval < 0 || o.MaxPark < 0:
		return bad("leave it zero for the default", "a time is negative")
	case !(o.Ratio >= 0 && o.Ratio <= 1): // written so that NaN is refused
		return bad("use a share such as 0.5, or zero for none", "ratio %v", o.Ratio)
	case o.Ratio == 0 && (o.MinRequests > 0 || o.Interval > 0):
		return bad("set Ratio, or leave them out: Failures counts those in a row", "MinRequests or Interval without a ratio")
	case o.MaxBreakers > 0 && o.Key == nil && o.Template == "":
		return bad("set Key or Template, or leave it out: there is one breaker", "MaxBreakers without a key")
	case o.Failures > 1<<30 || o.Probes > 1<<30 || o.MinRequests > 1<<30:
		return bad("use less than a billion", "a number is too large")
	}
	if err := o.OnOpen.validate("breaker"); err != nil {
		return err
	}
	o.Failures, o.Probes = orDefault(o.Failures, 5), orDefault(o.Probes, 1)
	o.MinRequests, o.MaxBreakers = orDefault(o.MinRequests, 20), orDefault(o.MaxBreakers, 10_000)
	o.Open, o.MaxPark = orDefault(o.Open, 30*time.Second), orDefault(o.MaxPark, DefaultMaxPark)
	o.Interval = orDefault(o.Interval, time.Minute)
	return nil
}

func orDefault[T int | time.Duration](v, d T) T {
	if v == 0 {
		return d
	}
	return v
}

func (b *Breaker) newCircuit(name string) *circuit {
	c := &circuit{name: name, b: b, state: StateClosed, since: time.Now()}
	c.begin(c.since)
	return c
}

// announce tells the hook of new states, with no lock held: it may ask for the status.
func (b *Breaker) announce(ctx context.Context, c *circuit) {
	if b.o.Hook == nil {
		return
	}
	c.mu.Lock()
	changes := c.changes
	c.changes = nil
	c.mu.Unlock()
	for _, state := range changes {
		b.o.Hook.tell(ctx, Event{Kind: EventState, Layer: layerBreaker, Name: c.name, State: state})
	}
}

// circuit returns the breaker of a message, or nil if there are too many.
func (b *Breaker) circuit(m *ferry.Message) *circuit {
	if b.only != nil {
		return b.only
	}
	return b.named(b.o.Name + "/" + bounded(b.key(m)))
}

func (b *Breaker) named(name string) *circuit {
	b.mu.RLock()
	c := b.circuits[name]
	b.mu.RUnlock()
	if c != nil {
		return c
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if c = b.circuits[name]; c != nil {
		return c
	}
	if len(b.circuits) >= b.o.MaxBreakers {
		b.forgetIdle()
	}
	if len(b.circuits) >= b.o.MaxBreakers {
		return nil
	}
	c = b.newCircuit(name)
	c.forced = b.sync.wanted(name)
	b.circuits[name] = c
	return c
}

// forgetIdle makes room: breakers that are closed and counted no failure lately. b.mu is held.
func (b *Breaker) forgetIdle() {
	for name, c := range b.circuits {
		if c.idle() {
			delete(b.circuits, name)
		}
	}
}

// Middleware leaves the downstream of a worker's handler alone while the breaker is open.
func (b *Breaker) Middleware() worker.Middleware {
	return func(next worker.Handler) worker.Handler {
		return func(ctx context.Context, d *ferry.Delivery) error {
			b.sync.refresh(ctx)
			c := b.circuit(d.Message)
			if c == nil {
				return b.refuse(ctx, b.o.Name, jitter(time.Second))
			}
			term, wait := c.enter()
			b.announce(ctx, c)
			if term == refused {
				return b.refuse(ctx, c.name, wait)
			}
			b.admitted.Add(1)
			if b.o.Hook != nil {
				b.o.Hook.tell(ctx, Event{Kind: EventAdmitted, Layer: layerBreaker, Name: c.name})
			}
			result := failed // a panic, or runtime.Goexit
			defer func() {
				c.leave(term, result)
				b.announce(ctx, c)
			}()
			err := next(ctx, d)
			result = b.judge(ctx, err)
			return err
		}
	}
}

func (b *Breaker) refuse(ctx context.Context, name string, wait time.Duration) error {
	b.refused.Add(1)
	b.o.Hook.tell(ctx, Event{Kind: EventOpen, Layer: layerBreaker, Name: name, After: wait})
	r := &Refusal{Layer: layerBreaker, Name: name, Reason: driver.ReasonBreakerOpen, After: wait}
	return r.decide(b.o.OnOpen, atMost(wait+rand.N(wait/10+1), b.o.MaxPark))
}

// judge says what a result means for the breaker.
func (b *Breaker) judge(ctx context.Context, err error) result {
	if err == nil {
		return succeeded
	}
	if refusedBy(err) != "" {
		return uncounted
	}
	if cause := context.Cause(ctx); errors.Is(cause, worker.ErrStopping) || errors.Is(cause, ferry.ErrLeaseLost) ||
		errors.Is(cause, ErrLost) {
		return uncounted
	}
	if b.o.IsFailure != nil {
		if b.o.IsFailure(err) {
			return failed
		}
		return uncounted
	}
	var answered *StatusError
	switch class := ClassOf(err); {
	case class == ClassTransient:
		return failed
	case class == ClassFatal && errors.As(err, &answered):
		return succeeded // it is well enough to say no
	}
	return uncounted
}

// Stats count what the breakers did in this process.
func (b *Breaker) Stats() Stats { return b.stats() }
