package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/worker"
)

// Set is the plugins of a program. It is safe for concurrent use.
type Set struct {
	mu   sync.Mutex
	list []*started
}

// started is one plugin with its parts.
type started struct {
	Plugin
	parts Parts
	names [][]string // of the filters
	log   *slog.Logger
	state State
	err   error
}

// Start starts plugins in order. One that fails is named in the log and left out; if it is Required those before it are
// stopped, and the error returned.
func Start(ctx context.Context, o Options) (*Set, error) {
	settings, err := o.check()
	if err != nil {
		return nil, err
	}
	log, s := cmp.Or(o.Logger, slog.Default()), new(Set)
	for _, p := range o.Plugins {
		one := &started{Plugin: p, log: log.With("plugin", p.Name), state: Disabled}
		s.list = append(s.list, one)
		setting := settings[p.Name]
		if setting.Disabled {
			continue
		}
		one.start(ctx, setting.Config)
		if one.err == nil {
			continue
		}
		one.log.ErrorContext(ctx, "a plugin did not start", "version", p.Version, "error", one.err)
		if p.Required {
			err := driver.NewError(ferry.ErrInvalid, fmt.Sprintf("plugin %s did not start, and is required", p.Name),
				"see to its settings, or disable it", one.err)
			return nil, errors.Join(err, s.Stop(context.WithoutCancel(ctx)))
		}
	}
	return s, nil
}

// check returns the settings by name, or what is wrong with the options.
func (o Options) check() (map[string]Setting, error) {
	invalid := func(text, hint string) error { return driver.NewError(ferry.ErrInvalid, text, hint, nil) }
	names := map[string]bool{}
	for _, p := range o.Plugins {
		switch {
		case p.Name == "" || p.Start == nil:
			return nil, invalid(fmt.Sprintf("plugin %q has no name or no Start", p.Name), "give it both")
		case names[p.Name]:
			return nil, invalid(fmt.Sprintf("there are two plugins %s", p.Name), "leave one of them out")
		}
		names[p.Name] = true
	}
	settings := map[string]Setting{}
	for _, s := range o.Settings {
		switch _, twice := settings[s.Name]; {
		case !names[s.Name]:
			return nil, invalid(fmt.Sprintf("there is no plugin %q to set something of", s.Name),
				"add it to Options.Plugins, or mend the name")
		case twice:
			return nil, invalid(fmt.Sprintf("plugin %s has two settings", s.Name), "make one of them")
		}
		settings[s.Name] = s
	}
	return settings, nil
}

func (p *started) start(ctx context.Context, config map[string]any) {
	p.state, p.err = Running, p.begin(ctx, config)
	if p.err != nil {
		p.state, p.parts = Failed, Parts{}
	}
}

// begin has a plugin make its parts, and looks at them.
func (p *started) begin(ctx context.Context, config map[string]any) error {
	err := p.safely(func() (err error) {
		p.parts, err = p.Start(ctx, Host{Logger: p.log, config: config})
		return err
	})
	if err != nil {
		return err
	}
	if err := p.checkFilters(); err != nil {
		return errors.Join(err, p.stop(context.WithoutCancel(ctx)))
	}
	return nil
}

// checkFilters finds filters that would keep the broker from being opened, whoever else has parts in it.
func (p *started) checkFilters() error {
	for i, f := range p.parts.Filters {
		if f == nil {
			return driver.NewError(ferry.ErrInvalid, fmt.Sprintf("filter %d of the plugin is nil", i+1), "leave it out", nil)
		}
		if err := p.safely(func() error { p.names = append(p.names, f.Names()); return nil }); err != nil {
			return err
		}
	}
	return nil
}

// safely turns a panic into an error.
func (p *started) safely(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("plugin %s panicked: %v", p.Name, v)
		}
	}()
	return f()
}

// Stop stops plugins in reverse order, each whatever became of the others: one that has not stopped when ctx ends is
// left behind. Close brokers and end workers before.
func (s *Set) Stop(ctx context.Context) error {
	var errs []error
	for _, p := range slices.Backward(s.ending()) {
		if err := p.stop(ctx); err != nil {
			p.log.ErrorContext(ctx, "a plugin did not stop well", "error", err)
			errs = append(errs, fmt.Errorf("plugin %s: %w", p.Name, err))
		}
	}
	return errors.Join(errs...)
}

// ending returns the plugins that are running, and notes that they do no longer.
func (s *Set) ending() []*started {
	running := s.running()
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(running, func(p *started) bool {
		was := p.state
		p.state = Stopped
		return was != Running
	})
}

// stop has a plugin end what it began. Its goroutine is left to a plugin that does not look at ctx.
func (p *started) stop(ctx context.Context) error {
	if p.parts.Stop == nil {
		return nil
	}
	stop, ended := p.parts.Stop, make(chan error, 1)
	go func() { ended <- p.safely(func() error { return stop(ctx) }) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select { // that of one that does look
	case err := <-ended:
		return err
	case <-time.After(lastMoment):
		return driver.NewError(ferry.ErrUnknown, "it has not stopped",
			"let its Stop return when its context ends", context.Cause(ctx))
	}
}

// lastMoment is for a plugin whose Stop returns because ctx has ended.
const lastMoment = time.Second

// List tells about all plugins, in order.
func (s *Set) List() []Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Info, len(s.list))
	for i, p := range s.list {
		all[i] = Info{Name: p.Name, Version: p.Version, State: p.state}
		if p.err != nil {
			all[i].Problem = p.err.Error()
		}
	}
	return all
}

// Broker returns options with the hooks, filters and authorisation of the plugins added: behind those of o.
func (s *Set) Broker(o ferry.Options) ferry.Options {
	o.Filters = slices.Clone(o.Filters)
	for _, p := range s.running() {
		o.Hooks = o.Hooks.And(p.hooks())
		for i, f := range p.parts.Filters {
			o.Filters = append(o.Filters, filter{f, p.names[i], p})
		}
	}
	return o
}

// Use adds the middleware of the plugins to a worker.
func (s *Set) Use(w *worker.Worker) {
	for _, p := range s.running() {
		for _, m := range p.parts.Middleware {
			w.Use(p.shield(m))
		}
	}
}

func (s *Set) running() []*started {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.list), func(p *started) bool { return p.state != Running })
}
