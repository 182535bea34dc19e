package rig

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/test/torture/checker"
	"github.com/ferrymq/ferry/test/torture/history"
	"github.com/ferrymq/ferry/test/torture/schedule"
)

// Run tortures one broker with one fault and returns the verdict. An error means that the run itself failed.
func Run(ctx context.Context, o Options) (*checker.Report, error) {
	o = o.withDefaults()
	if o.Dir == "" {
		return nil, errors.New("a run that is to be checked needs a directory for its histories")
	}
	open, err := Lookup(o.Broker)
	if err != nil {
		return nil, err
	}
	s, err := open(ctx, o)
	if err != nil {
		return nil, err
	}
	log, err := o.history("harness")
	if err != nil {
		return nil, errors.Join(err, s.close(ctx))
	}
	err = errors.Join(play(ctx, o, s, log), s.close(context.WithoutCancel(ctx)), log.Close())
	if err != nil {
		return nil, err
	}
	events, err := history.Read(o.Dir)
	if err != nil {
		return nil, err
	}
	return checker.Check(events)
}

// play goes through the acts: load with faults, heal, drain, stop, audit.
func play(ctx context.Context, o Options, s stage, log *history.Writer) error {
	count := map[string]int{consumer: o.Consumers, producer: o.Producers}
	steps, err := o.plan(s.actions(), count)
	if err != nil {
		return err
	}
	for _, group := range groups() {
		if err := s.driver().EnsureGroup(ctx, Topic, group, driver.GroupOptions{}); err != nil {
			return err
		}
	}
	log.Record(history.Event{Kind: history.KindRun, Run: o.promise(s.driver().Capabilities(), steps)})

	watching, unwatch := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { log.Watch(watching, "", o.Lease/4) })
	defer watch.Wait()
	defer unwatch()

	c := newCast(s, log, o.Seed, count)
	defer c.keep.Wait()
	defer c.dismiss(consumer)
	defer c.dismiss(producer)
	c.raise(ctx, consumer)
	c.raise(ctx, producer)
	if err := (&nemesis{cast: c, log: log}).run(ctx, steps, o.Load); err != nil {
		return err
	}

	stopping, cancel := context.WithTimeoutCause(ctx, o.Drain, errors.New("the time to drain is over"))
	defer cancel()
	c.dismiss(producer)
	if err := c.gone(stopping, producer); err != nil {
		return err
	}
	if _, err := drained(stopping, s.driver(), o.Drain); err != nil { // what is left is for the checker to find
		return err
	}
	c.dismiss(consumer)
	stopping, cancel = context.WithTimeoutCause(ctx, o.Drain, errors.New("the time to stop is over"))
	defer cancel()
	if err := c.gone(stopping, consumer); err != nil {
		return err
	}
	if err := c.failure(); err != nil {
		return err
	}
	return audit(ctx, s.driver(), log)
}

func (o Options) plan(actions schedule.Actions, count map[string]int) ([]schedule.Step, error) {
	clauses, err := o.Fault.clauses(o.Lease, actions)
	if err != nil {
		return nil, fmt.Errorf("fault %s: %w", o.Fault.Name, err)
	}
	return schedule.Plan(clauses, o.Load, o.Seed, count)
}

func (o Options) promise(c driver.Capabilities, steps []schedule.Step) *history.Run {
	run := &history.Run{
		Broker: o.Broker, Fault: o.Fault.Name, Seed: o.Seed, Groups: map[string][]string{Topic: groups()},
		Lease: o.Lease, RedeliverIn: o.RedeliverIn, MaxAttempts: maxAttempts, MaxDeliveries: maxDeliveries,
		Exact: c.Counts == driver.Exact, NoDuplicates: o.Fault.NoDuplicates,
	}
	for _, s := range steps {
		run.Plan = append(run.Plan, s.String())
	}
	return run
}

// Round is the longest load of one run: longer ones are split into rounds with seeds of their own, so that the histories
// fit into memory.
const Round = 20 * time.Second
