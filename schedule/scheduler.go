package schedule

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/instance"
	"github.com/ferrymq/ferry/internal/unique"
)

// Options of a Scheduler. The zero value is fine.
type Options struct {
	// Instance names this scheduler in the broker. Defaults to host, process id and a random part.
	Instance string
	// Lease is how soon another takes a tick whose taker was killed. At least Capabilities.MinLease. Defaults to three
	// seconds, or the least that the broker allows.
	Lease time.Duration
}

const (
	defaultLease = 3 * time.Second
	patience     = 5 * time.Second // for what has to be done after a stop
	tries        = 5               // of a write whose outcome is not known, or that another came before
)

// Scheduler declares, changes and runs schedules. It is safe for concurrent use.
type Scheduler struct {
	broker *ferry.Broker
	driver driver.Driver
	kv     driver.KV
	caps   driver.Capabilities
	log    *slog.Logger
	o      Options
}

// New checks the options and returns a Scheduler. It starts nothing: Run does.
func New(b *ferry.Broker, o Options) (*Scheduler, error) {
	switch {
	case b == nil:
		return nil, driver.NewError(ferry.ErrInvalid, "the broker is nil", "open one first, with open.URL for example", nil)
	case o.Lease < 0:
		return nil, driver.NewError(ferry.ErrInvalid, "Lease is negative", "leave it zero for the default", nil)
	}
	s := &Scheduler{broker: b, driver: b.Driver(), kv: b.Driver().KV(), caps: b.Driver().Capabilities(),
		log: b.Logger(), o: o}
	if s.o.Lease == 0 {
		s.o.Lease = max(defaultLease, s.caps.MinLease)
	}
	if s.o.Lease < s.caps.MinLease {
		return nil, driver.NewError(ferry.ErrUnsupported,
			fmt.Sprintf("a lease of %v is too short for %s", o.Lease, s.caps.Driver),
			fmt.Sprintf("use at least %v", s.caps.MinLease), nil)
	}
	if s.o.Instance == "" {
		s.o.Instance = instance.Unique()
	}
	return s, nil
}

// Run takes ticks and publishes what is scheduled, until ctx ends. It then returns nil. Any number of programs may run
// it; each tick is taken by one. A broker that is away for a time does not end it.
func (s *Scheduler) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		s.keepLooking(ctx)
	}()
	sv := &server{Scheduler: s, names: unique.New(s.driver)}
	err := sv.keepServing(ctx)
	stop()
	sv.close()
	<-looked
	return err
}

// keepServing takes ticks, and again after a pause when that fails.
func (s *server) keepServing(ctx context.Context) error {
	troubled := false
	for ctx.Err() == nil {
		served, err := s.serve(ctx)
		if ctx.Err() != nil {
			break
		}
		if permanent(err) || errors.Is(err, driver.ErrClosed) || errors.Is(err, driver.ErrRefused) {
			return err
		}
		if !troubled || served {
			s.log.WarnContext(ctx, "schedules cannot be run, and are tried again each second", "error", err)
		}
		troubled = true
		sleep(ctx, time.Second)
	}
	return nil
}

// permanent reports whether trying again cannot help.
func permanent(err error) bool {
	return errors.Is(err, driver.ErrInvalid) || errors.Is(err, driver.ErrTooLarge) || errors.Is(err, driver.ErrUnsupported)
}

// sleep waits, and reports whether it waited to the end.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
