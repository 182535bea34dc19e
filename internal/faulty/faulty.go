// Package faulty is a driver that fails as a test says: calls that are not made, that take long, or whose answers
// are lost.
package faulty

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/ferrymq/ferry/driver"
)

// Op is what a call does.
type Op int

// The calls that can fail: of a driver, of its subscriptions, and of its named values.
const (
	Publish Op = iota
	Move
	Delete
	Settle
	Write
	Get
	Wait
)

// Call is one publish, or one move, target, settlement, write or read. What is not of its Op is zero.
type Call struct {
	Messages   []*driver.Message  // of Publish
	Settlement *driver.Settlement // of Settle
	Bucket     string             // of Write, Get and Wait
	Write      *driver.Write      // of Write; a Fault may change it
}

// Fault stands in for a call. Nil lets it through; an error is its answer, and the call is not made then, unless the
// Fault made it with do.
type Fault func(ctx context.Context, c Call, do func()) error

// Fail is the Fault of calls that are not made.
func Fail(err error) Fault { return func(context.Context, Call, func()) error { return err } }

// Lose is the Fault of calls that are made and whose answers are lost.
func Lose(err error) Fault {
	return func(_ context.Context, _ Call, do func()) error { do(); return err }
}

// Once lets all calls through but the first.
func Once(f Fault) Fault {
	return ByNumber(func(n int) Fault {
		if n == 1 {
			return f
		}
		return nil
	})
}

// EverySecond lets the second call through, the fourth and so on.
func EverySecond(f Fault) Fault {
	return ByNumber(func(n int) Fault {
		if n%2 == 1 {
			return f
		}
		return nil
	})
}

// ByNumber chooses the fault of each call by its number, from 1. Nil lets it through.
func ByNumber(of func(n int) Fault) Fault {
	var calls atomic.Int64
	return func(ctx context.Context, c Call, do func()) error { return of(int(calls.Add(1))).call(ctx, c, do) }
}

// call makes a call unless the fault answers it.
func (f Fault) call(ctx context.Context, c Call, do func()) error {
	made := false
	once := func() {
		if !made {
			made = true
			do()
		}
	}
	if f != nil {
		if err := f(ctx, c, once); err != nil {
			return err
		}
	}
	once()
	return nil
}

// Driver is a driver around another. Without faults it is like that one.
type Driver struct {
	driver.Driver
	mu     sync.Mutex
	faults map[Op]Fault
	calls  map[Op]int
}

// New returns a Driver without faults.
func New(d driver.Driver) *Driver {
	return &Driver{Driver: d, faults: map[Op]Fault{}, calls: map[Op]int{}}
}

// Set gives the calls of an Op a fault from now on, and nil none.
func (d *Driver) Set(op Op, f Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults[op] = f
}

// Calls returns how often an Op was called.
func (d *Driver) Calls(op Op) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls[op]
}

func (d *Driver) fault(op Op) Fault {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls[op]++
	return d.faults[op]
}

// Publish stores messages.
func (d *Driver) Publish(ctx context.Context, ms []*driver.Message,
	o driver.PublishOptions) (rs []driver.Receipt, err error) {
	fault := d.fault(Publish).call(ctx, Call{Messages: ms}, func() { rs, err = d.Driver.Publish(ctx, ms, o) })
	if fault == nil {
		return rs, err
	}
	rs = make([]driver.Receipt, len(ms))
	for i, m := range ms {
		rs[i] = driver.Receipt{ID: m.ID, Err: fault}
	}
	return rs, fault
}

// Move changes where messages are.
func (d *Driver) Move(ctx context.Context, ms []driver.Move) []error {
	return each(ctx, d.fault(Move), ms, d.Driver.Move, func(*driver.Move) Call { return Call{} })
}

// Delete removes messages.
func (d *Driver) Delete(ctx context.Context, ts []driver.Target) []error {
	return each(ctx, d.fault(Delete), ts, d.Driver.Delete, func(*driver.Target) Call { return Call{} })
}

// each makes calls one by one if they have a fault.
func each[T any](ctx context.Context, f Fault, list []T, do func(context.Context, []T) []error,
	of func(*T) Call) []error {
	if f == nil {
		return do(ctx, list)
	}
	errs := make([]error, len(list))
	for i := range list {
		if err := f.call(ctx, of(&list[i]), func() { errs[i] = do(ctx, list[i:i+1])[0] }); err != nil {
			errs[i] = err
		}
	}
	return errs
}

// Subscribe joins a group.
func (d *Driver) Subscribe(ctx context.Context, o driver.SubscribeOptions) (driver.Subscription, error) {
	s, err := d.Driver.Subscribe(ctx, o)
	if err != nil {
		return nil, err
	}
	return &subscription{s, d}, nil
}

type subscription struct {
	driver.Subscription
	d *Driver
}

func (s *subscription) Settle(ctx context.Context, list []driver.Settlement) []error {
	return each(ctx, s.d.fault(Settle), list, s.Subscription.Settle,
		func(one *driver.Settlement) Call { return Call{Settlement: one} })
}

// KV returns the named values.
func (d *Driver) KV() driver.KV { return &values{d.Driver.KV(), d} }

type values struct {
	driver.KV
	d *Driver
}

func (v *values) Get(ctx context.Context, bucket string, names ...string) (vs []driver.Value, err error) {
	fault := v.d.fault(Get).call(ctx, Call{Bucket: bucket}, func() { vs, err = v.KV.Get(ctx, bucket, names...) })
	if fault != nil {
		return nil, fault
	}
	return vs, err
}

func (v *values) Apply(ctx context.Context, bucket string, o driver.KVOptions,
	ws ...driver.Write) []driver.WriteResult {
	f := v.d.fault(Write)
	if f == nil {
		return v.KV.Apply(ctx, bucket, o, ws...)
	}
	rs := make([]driver.WriteResult, len(ws))
	for i, w := range ws {
		fault := f.call(ctx, Call{Bucket: bucket, Write: &w}, func() { rs[i] = v.KV.Apply(ctx, bucket, o, w)[0] })
		if fault != nil {
			rs[i] = driver.WriteResult{Err: fault}
		}
	}
	return rs
}

func (v *values) Wait(ctx context.Context, bucket, name string, after uint64) (value driver.Value, err error) {
	fault := v.d.fault(Wait).call(ctx, Call{Bucket: bucket}, func() { value, err = v.KV.Wait(ctx, bucket, name, after) })
	if fault != nil {
		return driver.Value{}, fault
	}
	return value, err
}
