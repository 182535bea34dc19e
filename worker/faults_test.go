package worker_test

import (
	"context"
	"sync"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// faulty is a driver whose subscriptions fail as a test says. A nil function lets the call through.
type faulty struct {
	driver.Driver

	mu        sync.Mutex
	subscribe func() error
	receive   func() error
	settle    func(s []driver.Settlement) error // instead of the call
	answer    func(s []driver.Settlement) error // instead of its answers
	extend    func() error
	begin     func() error
	drained   func() // is told of Drain
	lose      string // the body of a message whose lease is lost when it is to be extended
	close     func() error
	calls     map[string]int
	revoking  func(ctx context.Context, ds []*driver.Delivery)
	seen      *received                // everything that was received, if set
	received  func(d *driver.Delivery) // changes what was received
}

// set changes what fails.
func (f *faulty) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// dead makes every call of the subscriptions fail from now on, as if the process that holds them were gone.
func (f *faulty) dead() {
	gone := func() error { return ferry.ErrUnknown }
	f.set(func() {
		f.receive, f.extend, f.begin, f.close = gone, gone, gone, func() error { return nil }
		f.settle = func([]driver.Settlement) error { return ferry.ErrUnknown }
	})
}

// revive lets every call through again.
func (f *faulty) revive() {
	f.set(func() { f.receive, f.extend, f.begin, f.close, f.settle = nil, nil, nil, nil, nil })
}

func (f *faulty) count(call string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[call]
}

func (f *faulty) fail(call string, get func() func() error) error {
	f.mu.Lock()
	if f.calls == nil {
		f.calls = make(map[string]int)
	}
	f.calls[call]++
	fail := get()
	f.mu.Unlock()
	if fail == nil {
		return nil
	}
	return fail()
}

func (f *faulty) Subscribe(ctx context.Context, o driver.SubscribeOptions) (driver.Subscription, error) {
	if err := f.fail("subscribe", func() func() error { return f.subscribe }); err != nil {
		return nil, err
	}
	f.set(func() { f.revoking = o.Revoking })
	s, err := f.Driver.Subscribe(ctx, o)
	if err != nil {
		return nil, err
	}
	return &faultySubscription{s, f}, nil
}

type faultySubscription struct {
	driver.Subscription
	f *faulty
}

func (s *faultySubscription) Receive(ctx context.Context, limit int) ([]*driver.Delivery, error) {
	if err := s.f.fail("receive", func() func() error { return s.f.receive }); err != nil {
		return nil, err
	}
	ds, err := s.Subscription.Receive(ctx, limit)
	s.f.set(func() {
		for _, d := range ds {
			if s.f.received != nil {
				s.f.received(d)
			}
		}
		if s.f.seen != nil {
			s.f.seen.ds = append(s.f.seen.ds, ds...)
		}
	})
	return ds, err
}

func (s *faultySubscription) Settle(ctx context.Context, list []driver.Settlement) []error {
	err := s.f.fail("settle", func() func() error {
		if s.f.settle == nil {
			return nil
		}
		fail := s.f.settle
		return func() error { return fail(list) }
	})
	if err != nil {
		return same(err, len(list))
	}
	errs := s.Subscription.Settle(ctx, list)
	var answer func([]driver.Settlement) error
	s.f.set(func() { answer = s.f.answer })
	if answer != nil {
		if err := answer(list); err != nil {
			return same(err, len(list))
		}
	}
	return errs
}

func (s *faultySubscription) Extend(ctx context.Context, ds []*driver.Delivery) []error {
	if err := s.f.fail("extend", func() func() error { return s.f.extend }); err != nil {
		return same(err, len(ds))
	}
	errs := s.Subscription.Extend(ctx, ds)
	s.f.set(func() {
		for i, d := range ds {
			if s.f.lose != "" && string(d.Body) == s.f.lose {
				errs[i] = ferry.ErrLeaseLost
			}
		}
	})
	return errs
}

func (s *faultySubscription) Begin(ctx context.Context, ds []*driver.Delivery) []error {
	if err := s.f.fail("begin", func() func() error { return s.f.begin }); err != nil {
		return same(err, len(ds))
	}
	return s.Subscription.Begin(ctx, ds)
}

func (s *faultySubscription) Drain(ctx context.Context) error {
	s.f.mu.Lock()
	drained := s.f.drained
	s.f.mu.Unlock()
	if drained != nil {
		drained()
	}
	return s.Subscription.Drain(ctx)
}

func (s *faultySubscription) Close(ctx context.Context) error {
	s.f.mu.Lock()
	fail := s.f.close
	s.f.mu.Unlock()
	if fail != nil {
		return fail()
	}
	return s.Subscription.Close(ctx)
}

func same(err error, n int) []error {
	errs := make([]error, n)
	for i := range errs {
		errs[i] = err
	}
	return errs
}
