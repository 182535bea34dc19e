package rig

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/test/torture/history"
	"github.com/ferrymq/ferry/test/torture/victim"
	"github.com/ferrymq/ferry/test/torture/workload"
)

// localStage runs "processes" as goroutines of this one, around one driver: for brokers that live in the process.
type localStage struct {
	shared driver.Driver
	o      Options

	mu        sync.Mutex
	processes map[*localProcess]struct{}
}

func newLocalStage(d driver.Driver, o Options) *localStage {
	return &localStage{shared: d, o: o, processes: map[*localProcess]struct{}{}}
}

func (s *localStage) look(_ context.Context, f func(driver.Driver) error) error { return f(s.shared) }

func (s *localStage) servers() servers { return nil }

func (s *localStage) drain(ctx context.Context, c *cast) error {
	return s.o.drainThrough(ctx, s.shared, c)
}

// localProcess is a worker or producer of its own behind a driver of its own, so that it can be cut off from the
// others.
type localProcess struct {
	harm   *victim.Harm
	habits *workload.Habits
	log    *history.Writer
	cancel context.CancelFunc
	over   chan struct{} // closed when its goroutines have ended
	result error         // set before

	gone   chan struct{} // closed when it is over, or killed
	once   sync.Once
	killed atomic.Bool
}

func (s *localStage) start(ctx context.Context, role string, seed uint64, name string) (process, error) {
	log, err := s.o.history(name)
	if err != nil {
		return nil, err
	}
	p := &localProcess{
		harm: victim.NewHarm(), habits: &workload.Habits{}, log: log,
		over: make(chan struct{}), gone: make(chan struct{}),
	}
	broker, err := ferry.New(victim.Wrap(s.shared, log, p.harm, true),
		ferry.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	ctx, p.cancel = context.WithCancel(ctx)
	settings := s.o.settings(role, seed)
	go func() {
		p.result = errors.Join(settings.Run(ctx, workload.Host{Broker: broker, Log: log, Habits: p.habits,
			Pass: p.harm.Pass}), broker.Close(context.WithoutCancel(ctx)))
		if !p.killed.Load() {
			s.forget(p)
		}
		close(p.over)
		p.leave()
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.processes[p] = struct{}{}
	return p, nil
}

// forget lets go of a process that ended by itself. A killed one must be buried in the end.
func (s *localStage) forget(p *localProcess) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.processes[p]; ok {
		delete(s.processes, p)
		p.result = errors.Join(p.result, p.log.Close())
	}
}

func (p *localProcess) leave() { p.once.Do(func() { close(p.gone) }) }

func (p *localProcess) kill() error {
	p.killed.Store(true)
	p.harm.Kill() // first: nothing may be sent that is not written down
	p.log.Mute()
	p.leave()
	return nil
}

func (p *localProcess) terminate() error {
	p.cancel()
	return nil
}

func (p *localProcess) begin(action, value string) error {
	known, err := p.harm.Begin(action, value)
	if !known && err == nil {
		known, err = p.habits.Begin(action, value)
	}
	if !known && err == nil {
		err = fmt.Errorf("nothing here can %s a process", action)
	}
	return err
}

func (p *localProcess) end(action string) error {
	_, err := p.harm.End(action)
	_, err2 := p.habits.End(action)
	return errors.Join(err, err2)
}

func (p *localProcess) done() <-chan struct{} { return p.gone }

func (p *localProcess) err() error {
	if p.killed.Load() {
		return nil
	}
	return p.result
}

// close buries the dead, ends the living, and returns when no goroutine is left.
func (s *localStage) close(ctx context.Context) error {
	s.mu.Lock()
	left := s.processes
	s.processes = map[*localProcess]struct{}{}
	s.mu.Unlock()
	var errs []error
	for p := range left {
		p.harm.Bury()
		p.cancel()
		<-p.over
		errs = append(errs, p.log.Close())
	}
	return errors.Join(append(errs, s.shared.Close(ctx))...)
}
