package rig

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/test/torture/checker"
	"github.com/ferrymq/ferry/test/torture/history"
	"github.com/ferrymq/ferry/test/torture/schedule"
)

// Run tortures one broker with one fault and returns the verdict. An error means that the run itself failed.
func Run(ctx context.Context, o Options) (*checker.Report, error) {
	if o.Dir == "" {
		return nil, errors.New("a run that is to be checked needs a directory for its histories")
	}
	b, err := lookup(o.Broker)
	if err != nil {
		return nil, err
	}
	o = o.withDefaults(b.pace)
	if _, err := o.plan(b); err != nil { // before anything is started
		return nil, err
	}
	s, err := b.open(ctx, o)
	if err != nil {
		return nil, err
	}
	log, err := o.history("harness")
	if err != nil {
		return nil, errors.Join(err, s.close(ctx))
	}
	err = errors.Join(play(ctx, o, b, s, log), s.close(context.WithoutCancel(ctx)), log.Close())
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
func play(ctx context.Context, o Options, b broker, s stage, log *history.Writer) error {
	steps, err := o.plan(b)
	if err != nil {
		return err
	}
	if err := s.look(ctx, func(d driver.Driver) error { return prepare(ctx, o, b, d, steps, log) }); err != nil {
		return err
	}
	watching, unwatch := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { log.Watch(watching, "", o.Lease/4) })
	defer watch.Wait()
	defer unwatch()

	c := newCast(s, log, o, b)
	defer c.keep.Wait()
	defer func() {
		for _, role := range slices.Backward(b.roles) {
			c.dismiss(role)
		}
	}()
	for _, role := range b.roles {
		c.raise(ctx, role)
	}
	if err := (&nemesis{cast: c, servers: s.servers(), log: log}).run(ctx, steps, o.Load); err != nil {
		return err
	}
	if err := s.drain(ctx, c); err != nil {
		return errors.Join(err, c.failure())
	}
	if err := c.failure(); err != nil {
		return err
	}
	return s.look(ctx, func(d driver.Driver) error { return audit(ctx, d, log, o.Fault.Leaves) })
}

// prepare makes the groups, and writes down what the run promises.
func prepare(ctx context.Context, o Options, b broker, d driver.Driver, steps []schedule.Step,
	log *history.Writer) error {
	if o.Fault.Setup == setupKept {
		if err := d.EnsureTopic(ctx, Topic, driver.TopicConfig{Keep: keep}); err != nil {
			return err
		}
	}
	for _, group := range groups() {
		if err := d.EnsureGroup(ctx, Topic, group, driver.GroupOptions{}); err != nil {
			return err
		}
	}
	log.Record(history.Event{Kind: history.KindRun, Run: o.promise(b, d.Capabilities(), steps)})
	return nil
}

func (o Options) plan(b broker) ([]schedule.Step, error) {
	clauses, err := o.Fault.clauses(o.Lease, b.actions)
	if err != nil {
		return nil, fmt.Errorf("fault %s: %w", o.Fault.Name, err)
	}
	return schedule.Plan(clauses, o.Load, o.Seed, b.count(o))
}

func (o Options) promise(b broker, c driver.Capabilities, steps []schedule.Step) *history.Run {
	run := &history.Run{
		Broker: o.Broker, Fault: o.Fault.Name, Seed: o.Seed, Groups: map[string][]string{Topic: groups()},
		Lease: o.Lease, RedeliverIn: o.RedeliverIn, MaxAttempts: maxAttempts, MaxDeliveries: maxDeliveries,
		Exact: c.Counts == driver.CountsExact, NoDuplicates: o.Fault.NoDuplicates,
		Owned: b.owned, LeasesDie: b.leasesDie, MayForget: o.Fault.MayForget, RecoverIn: o.RecoverIn,
	}
	if c.LeaseScope == driver.LeasePerPartition {
		run.Heartbeat, run.CommitIn, run.ClockError = b.pace.heartbeat, o.CommitIn, o.ClockError
	}
	for _, s := range steps {
		run.Plan = append(run.Plan, s.String())
	}
	return run
}

// Round is the longest load of one run, but for faults in a row: longer ones are split into rounds with seeds of their
// own, so that the histories fit into memory.
const Round = 20 * time.Second
