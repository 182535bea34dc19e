package guard

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/guard/store"
	"github.com/ferrymq/ferry/worker"
)

// ConcurrencyOptions of a Concurrency.
type ConcurrencyOptions struct {
	// Name is what the store calls it.
	Name string
	// Key says what shares slots; Template says the same as a text. Defaults to the message's key.
	Key      KeyFunc
	Template string
	// Max is how many messages of a key are handled at once. MaxOf, if set, says so for each key; less than 1 means Max.
	Max   int
	MaxOf func(key string) int
	// Lease is how long after a crash its slots are free again, in a store that processes share. Defaults to 10 s.
	Lease time.Duration
	// OnBusy is what becomes of a message for which there is no slot. Defaults to Park.
	OnBusy Policy
	// FailOpen lets messages pass while the store cannot be reached. Otherwise they wait.
	FailOpen bool
	// MaxPark is how long a message is parked at most before it is looked at again. Defaults to 1 s.
	MaxPark time.Duration
	Hook    Hook
}

// Concurrency bounds how many messages of a key are handled at once: by all processes that share its store, or with a
// Memory store by this one alone, as a bulkhead. A message without a slot goes back to the broker, so that it occupies
// no slot of the worker.
type Concurrency struct {
	store  Store
	o      ConcurrencyOptions
	key    KeyFunc
	outage *outage
	pacer  pacer
	took   atomic.Int64 // how long handlers take lately, on average
	counters
}

// NewConcurrency returns a bound with its slots in a store.
func NewConcurrency(s Store, o ConcurrencyOptions) (*Concurrency, error) {
	if s == nil {
		return nil, driver.NewError(driver.ErrInvalid, "the concurrency limit has no store",
			"give it NewMemory(MemoryOptions{}) for a bulkhead of this process", nil)
	}
	if err := driver.CheckName("concurrency limit", o.Name); err != nil {
		return nil, err
	}
	key, err := chooseKey("concurrency limit "+o.Name, o.Key, o.Template)
	if err != nil {
		return nil, err
	}
	switch {
	case o.Max < 1:
		return nil, driver.NewError(driver.ErrInvalid, fmt.Sprintf("concurrency limit %q of %d", o.Name, o.Max),
			"use 1 or more", nil)
	case o.Lease < 0 || o.Lease > 0 && o.Lease < time.Second:
		return nil, driver.NewError(driver.ErrInvalid, fmt.Sprintf("concurrency limit %q: lease %v", o.Name, o.Lease),
			"use 1s or more", nil)
	case o.MaxPark < 0:
		return nil, driver.NewError(driver.ErrInvalid, fmt.Sprintf("concurrency limit %q: MaxPark %v", o.Name, o.MaxPark),
			"leave it zero for the default", nil)
	}
	if err := o.OnBusy.validate("concurrency limit"); err != nil {
		return nil, err
	}
	if o.Lease == 0 {
		o.Lease = 10 * time.Second
	}
	if o.MaxPark == 0 {
		o.MaxPark = time.Second
	}
	return &Concurrency{store: s, o: o, key: key, outage: newOutage(s)}, nil
}

// Middleware bounds what a worker handles at once.
func (c *Concurrency) Middleware() worker.Middleware {
	return func(next worker.Handler) worker.Handler {
		return func(ctx context.Context, d *ferry.Delivery) error {
			r := store.SlotRequest{Limit: c.o.Name, Key: bounded(c.key(d.Message)), Lease: c.o.Lease}
			r.Max = c.max(r.Key)
			asked := c.clock()
			slot, wait, err := c.acquire(ctx, r)
			switch {
			case err != nil && c.o.FailOpen:
				return next(ctx, d)
			case err != nil:
				return (&Refusal{Layer: layerConcurrency, Name: r.Limit, Key: r.Key, After: wait, Err: err}).decide(Park, wait)
			case !slot.Held:
				return c.refuse(ctx, r, d.Cause == driver.CauseReleased)
			}
			r.Token = slot.Token
			c.admit(ctx, r)
			return c.run(ctx, d, next, r, slot, asked)
		}
	}
}

// clock is the time, or zero where nobody needs it: leases run in stores that processes share alone, and of handlers
// that are quick it is enough to measure some.
func (c *Concurrency) clock() time.Time {
	const some = 16
	if c.outage.instant && time.Duration(c.took.Load()) < time.Millisecond && c.admitted.Load()%some != 0 {
		return time.Time{}
	}
	return time.Now()
}

func (c *Concurrency) max(key string) int {
	if c.o.MaxOf != nil {
		if n := c.o.MaxOf(key); n > 0 {
			return n
		}
	}
	return c.o.Max
}

func (c *Concurrency) acquire(ctx context.Context, r store.SlotRequest) (slot store.Slot,
	wait time.Duration, err error) {
	wait, ok := c.outage.may()
	if err = errStoreDown; ok {
		bounded, cancel := c.outage.bounded(ctx)
		slot, err = c.store.Acquire(bounded, r)
		cancel()
		wait = c.outage.learn(err)
	}
	if err != nil {
		c.failures.Add(1)
		c.o.Hook.tell(ctx, Event{Kind: EventStoreFailed, Layer: layerConcurrency, Name: r.Limit, Key: r.Key, Err: err})
	}
	return slot, wait, err
}

func (c *Concurrency) admit(ctx context.Context, r store.SlotRequest) {
	c.admitted.Add(1)
	if c.o.Hook != nil {
		c.o.Hook.tell(ctx, Event{Kind: EventAdmitted, Layer: layerConcurrency, Name: r.Limit, Key: r.Key})
	}
}

func (c *Concurrency) refuse(ctx context.Context, r store.SlotRequest, again bool) error {
	c.refused.Add(1)
	step := c.step(r.Max)
	wait := atMost(c.pacer.wait(id{r.Limit, r.Key}, step, step, again), c.o.MaxPark)
	c.o.Hook.tell(ctx, Event{Kind: EventBusy, Layer: layerConcurrency, Name: r.Limit, Key: r.Key, After: wait})
	refusal := &Refusal{Layer: layerConcurrency, Name: r.Limit, Key: r.Key, Reason: driver.ReasonOverload, After: wait}
	return refusal.decide(c.o.OnBusy, wait)
}

// step is how long it takes, on average, until a slot is free.
func (c *Concurrency) step(slots int) time.Duration {
	return max(time.Duration(c.took.Load())/time.Duration(slots), 10*time.Millisecond)
}

// run handles a message in its slot, which is freed however the handler ends.
func (c *Concurrency) run(ctx context.Context, d *ferry.Delivery, next worker.Handler, r store.SlotRequest,
	slot store.Slot, asked time.Time) (err error) {
	if !slot.Leased {
		defer c.free(ctx, r, asked)
		return next(ctx, d)
	}
	k := keep(ctx, asked, r.Lease, func(ctx context.Context) (bool, error) {
		s, err := c.store.Acquire(ctx, r)
		return s.Held, err
	})
	defer func() {
		kept := k.stop()
		c.free(ctx, r, asked)
		if !kept {
			c.lost.Add(1)
			c.o.Hook.tell(ctx, Event{Kind: EventLost, Layer: layerConcurrency, Name: r.Limit, Key: r.Key})
			if err != nil { // we ended its context: that is no attempt
				err = (&Refusal{Layer: layerConcurrency, Name: r.Limit, Key: r.Key, Reason: driver.ReasonOverload}).decide(Park,
					jitter(time.Second))
			}
		}
	}()
	return next(k.ctx, d)
}

func (c *Concurrency) free(ctx context.Context, r store.SlotRequest, asked time.Time) {
	if !asked.IsZero() {
		took := int64(time.Since(asked))
		if before := c.took.Load(); before > 0 {
			took = before + (took-before)/8
		}
		c.took.Store(took) // a lost update is a sample less
	}
	_ = c.outage.later(ctx, func(ctx context.Context) error { return c.store.Release(ctx, r) })
}

// Stats count what the limit did in this process.
func (c *Concurrency) Stats() Stats { return c.stats() }
