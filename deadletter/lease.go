package deadletter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// RunnerTopic is an internal topic with one message, which whoever runs the recovery holds, and the versions that were
// seen. Pausing the topic pauses the recovery everywhere.
const RunnerTopic = "ferry.recovery"

const leaseID = "lease"

var errLease = errors.New("the lease of the recovery was lost")

// lead waits for the lease of the recovery, runs work while it is held, and gives it back. Work gets a context that ends
// when the lease is lost, before another can have it.
func (r *Runner) lead(ctx context.Context, work func(ctx context.Context) error) (err error) {
	if err := r.office.layLease(ctx); err != nil {
		return err
	}
	sub, err := r.office.driver.Subscribe(ctx, driver.SubscribeOptions{Topic: RunnerTopic, Instance: r.o.Instance, Lease: r.lease, MaxInflight: 1})
	if err != nil {
		return err
	}
	closing := context.WithoutCancel(ctx)
	defer func() {
		limited, cancel := context.WithTimeout(closing, 5*time.Second)
		defer cancel()
		if closed := sub.Close(limited); err == nil {
			err = closed
		}
	}()
	before := time.Now()
	ds, err := sub.Receive(ctx, 1)
	if err != nil {
		return err
	}
	if ds[0].LeaseUntil.After(before) {
		before = ds[0].LeaseUntil.Add(-r.lease)
	}
	held, lose := context.WithCancelCause(ctx)
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		r.keep(held, sub, ds, before.Add(r.lease), lose)
	}()
	r.leading(true)
	err = work(held)
	r.leading(false)
	lose(nil)
	<-kept
	if errors.Is(context.Cause(held), errLease) {
		err = errLease
	}
	return err
}

// keep extends the lease every third of it, and calls lose before it ends without that.
func (r *Runner) keep(ctx context.Context, sub driver.Subscription, ds []*driver.Delivery, until time.Time, lose context.CancelCauseFunc) {
	margin := r.lease / 10
	every := r.lease / 3
	timer := time.NewTimer(every)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		before := time.Now()
		call, cancel := context.WithDeadline(ctx, until.Add(-margin))
		err := answer(sub.Extend(call, ds), 0)
		cancel()
		switch {
		case err == nil:
			until = before.Add(r.lease)
			timer.Reset(every)
		case errors.Is(err, driver.ErrLeaseLost) || !time.Now().Before(until.Add(-margin)):
			lose(errLease)
			return
		default:
			timer.Reset(min(every, max(r.lease/20, time.Until(until.Add(-margin)))))
		}
	}
}

// layLease makes sure that the message is there which is the lease.
func (o *Office) layLease(ctx context.Context) error {
	_, err := o.driver.Get(ctx, driver.Target{Topic: RunnerTopic, ID: leaseID})
	if err == nil || !errors.Is(err, driver.ErrNotFound) {
		return err
	}
	m := &driver.Message{ID: leaseID, OwnID: true, Topic: RunnerTopic, Body: []byte("whoever holds this message runs the recovery of dead letters"), ContentType: "text/plain"}
	receipts, err := o.driver.Publish(ctx, []*driver.Message{m}, driver.PublishOptions{})
	if len(receipts) == 1 && receipts[0].Err == nil {
		return nil // stored, or somebody else was first
	}
	return err
}

// deployedAt returns since when the present version is the newest that was seen, by the backend's clock. It notes the
// version if it is new.
func (o *Office) deployedAt(ctx context.Context, version string) (time.Time, error) {
	for range 2 {
		p, err := o.driver.Browse(ctx, driver.Query{Topic: RunnerTopic, State: driver.StateHeld, Limit: 1000})
		if err != nil {
			return time.Time{}, err
		}
		var newest driver.Entry
		var older []driver.Target
		for _, e := range p.Entries {
			old := e
			if newest.Message == nil || !e.PublishedAt.Before(newest.PublishedAt) {
				old, newest = newest, e
			}
			if old.Message != nil {
				older = append(older, driver.Target{Topic: RunnerTopic, Ref: old.Ref, ID: old.ID})
			}
		}
		if newest.Message != nil && string(newest.Body) == version {
			o.delete(ctx, older) // what stays is deleted the next time
			return newest.PublishedAt, nil
		}
		previous := ""
		if newest.Message != nil {
			previous = newest.ID
		}
		m := &driver.Message{ID: driver.EmitID("version/"+version+"/"+previous, 0), OwnID: true, Topic: RunnerTopic, Body: []byte(version), Delay: driver.Hold}
		if _, err := o.driver.Publish(ctx, []*driver.Message{m}, driver.PublishOptions{}); err != nil {
			return time.Time{}, err
		}
	}
	return time.Time{}, fmt.Errorf("version %q was noted, and is not the newest: another version runs the recovery too", version)
}
