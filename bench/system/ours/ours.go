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
	// Connect opens an empty driver. Stop ends what Connect started beside it, and may be nil.
	Connect func(ctx context.Context) (d driver.Driver, stop func() error, err error)
	// Concurrency is how many handlers run where a scenario does not say. Defaults to that of package worker.
	Concurrency int
}

// Info describes it.
func (s System) Info() system.Info {
	return system.Info{
		Name: "ferry " + s.Driver, Version: "this checkout", Settings: s.Settings,
		Why: "what a program gets by default: leases, acknowledgements after the handler, retries, dead letters and exact counts are all on",
	}
}

// Lacks is always empty: every driver does everything.
func (System) Lacks(system.Feature) string { return "" }

// Open connects to an empty broker.
func (s System) Open(ctx context.Context, _ system.Options) (system.Session, error) {
	d, stop, err := s.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if stop == nil {
		stop = func() error { return nil }
	}
	b, err := ferry.New(d, ferry.Options{})
	if err != nil {
		return nil, errors.Join(err, d.Close(ctx), stop())
	}
	return &session{broker: b, concurrency: s.Concurrency, stop: stop}, nil
}

type session struct {
	broker      *ferry.Broker
	concurrency int
	stop        func() error
}

func (s *session) Publisher() system.Publisher { return &publisher{broker: s.broker} }

func (s *session) ServerCPU() time.Duration { return 0 }

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

// Consume runs a worker.
func (s *session) Consume(ctx context.Context, o system.ConsumeOptions, h system.Handler) (system.Consumer, error) {
	if o.Concurrency == 0 {
		o.Concurrency = s.concurrency
	}
	w := worker.New(s.broker, worker.Options{Concurrency: o.Concurrency})
	var opts []worker.HandlerOption
	if o.RetryAfter > 0 {
		opts = append(opts, worker.Retry(ferry.Delays(o.RetryAfter)), worker.MaxAttempts(1<<30))
	}
	worker.HandleRaw(w, topic, func(_ context.Context, d *ferry.Delivery) error { return h(d.Body) }, opts...)
	ctx, cancel := context.WithCancel(ctx)
	c := &consumer{cancel: cancel, ended: make(chan error, 1)}
	go func() { c.ended <- w.Run(ctx) }()
	return c, nil
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
