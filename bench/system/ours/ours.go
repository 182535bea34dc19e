// Package ours is Ferry on any of its drivers: what a program gets that uses ferry.Broker and package worker.
package ours

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/bench/system"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/worker"
)

const topic = "bench"

// System is Ferry on one driver.
type System struct {
	Driver   string
	Settings string
	// Start starts what the driver needs, empty.
	Start func(ctx context.Context) (Backend, error)
	// Missing are features that the backend lacks, with the reason.
	Missing map[system.Feature]string
	// Bare consumes by the driver alone, without package worker.
	Bare bool
	// Concurrency is how many handlers run where a scenario does not say. Defaults to that of package worker.
	Concurrency int
}

// Backend is what a driver is opened on: a server, a directory, or nothing at all.
type Backend struct {
	Open func(ctx context.Context) (driver.Driver, error)
	// Usage and Stop may be nil.
	Usage func() (system.Usage, error)
	Stop  func() error
}

// Info describes it.
func (s System) Info() system.Info {
	return system.Info{
		Name: "ferry " + s.Driver, Version: "this checkout", Settings: s.Settings,
		Why: "what a program gets by default: leases, acknowledgements after the handler, retries, dead letters and exact " +
			"counts are all on",
	}
}

// Lacks is what the backend lacks: every driver does everything.
func (s System) Lacks(f system.Feature) string { return s.Missing[f] }

// Open connects to an empty broker.
func (s System) Open(ctx context.Context, _ system.Options) (system.Session, error) {
	backend, err := s.Start(ctx)
	if err != nil {
		return nil, err
	}
	one := &session{backend: backend, concurrency: s.Concurrency, bare: s.Bare}
	if err := one.open(ctx); err != nil {
		return nil, errors.Join(err, one.stop())
	}
	return one, nil
}

type session struct {
	backend     Backend
	broker      *ferry.Broker
	concurrency int
	bare        bool
}

func (s *session) open(ctx context.Context) error {
	d, err := s.backend.Open(ctx)
	if err != nil {
		return err
	}
	if s.broker, err = ferry.New(d, ferry.Options{}); err != nil {
		return errors.Join(err, d.Close(ctx))
	}
	return nil
}

func (s *session) Publisher() system.Publisher { return &publisher{session: s} }

func (s *session) Usage() (system.Usage, error) {
	if s.backend.Usage == nil {
		return system.Usage{}, nil
	}
	return s.backend.Usage()
}

// Restart closes the broker and opens it again.
func (s *session) Restart(ctx context.Context) (time.Duration, error) {
	if err := s.broker.Close(ctx); err != nil {
		return 0, err
	}
	began := time.Now()
	err := s.open(ctx)
	return time.Since(began), err
}

func (s *session) stop() error {
	if s.backend.Stop == nil {
		return nil
	}
	return s.backend.Stop()
}

func (s *session) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return errors.Join(s.broker.Close(ctx), s.stop())
}

// Settled waits until the broker itself says that nothing is left.
func (s *session) Settled(ctx context.Context) error {
	for {
		st, err := s.broker.Driver().Stats(ctx, topic)
		if err != nil {
			return err
		}
		if len(st.Groups) == 1 && st.Groups[0].Acked == st.Published {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not everything is acknowledged (%+v): %w", st, context.Cause(ctx))
		case <-time.After(200 * time.Microsecond):
		}
	}
}

// Consume runs a worker, or the driver alone.
func (s *session) Consume(ctx context.Context, o system.ConsumeOptions, h system.Handler) (system.Consumer, error) {
	if s.bare {
		return s.consumeBare(ctx, h)
	}
	if o.Concurrency == 0 {
		o.Concurrency = s.concurrency
	}
	w := worker.New(s.broker, worker.Options{Concurrency: o.Concurrency})
	var opts []worker.HandlerOption
	if o.RetryAfter > 0 {
		opts = append(opts, worker.Retry(ferry.Delays(o.RetryAfter)), worker.MaxAttempts(1<<30))
	}
	if o.Guarded {
		layers, err := guards(o.Deduplicated)
		if err != nil {
			return nil, err
		}
		opts = append(opts, worker.Use(layers.Middleware()...))
	}
	if o.Batch > 1 {
		worker.HandleBatch(w, topic, batched(h), append(opts, worker.BatchSize(o.Batch))...)
	} else {
		worker.HandleRaw(w, topic, func(_ context.Context, d *ferry.Delivery) error { return h(d.Body) }, opts...)
	}
	ctx, cancel := context.WithCancel(ctx)
	c := &consumer{cancel: cancel, ended: make(chan error, 1)}
	go func() { c.ended <- w.Run(ctx) }()
	return c, nil
}

// batched hands the messages of a call to a handler of one.
func batched(h system.Handler) func(context.Context, []*ferry.Msg[[]byte]) error {
	return func(_ context.Context, ms []*ferry.Msg[[]byte]) error {
		errs := make(worker.ItemErrors, len(ms))
		for i, m := range ms {
			errs[i] = h(m.Value)
		}
		if len(errs.Unwrap()) == 0 {
			return nil
		}
		return errs
	}
}

type consumer struct {
	cancel context.CancelFunc
	ended  chan error
}

func (c *consumer) Stop(ctx context.Context) error {
	c.cancel()
	select {
	case err := <-c.ended:
		return err
	case <-ctx.Done():
		return fmt.Errorf("the worker did not stop: %w", context.Cause(ctx))
	}
}
