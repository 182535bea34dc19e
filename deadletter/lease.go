package deadletter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// RecovererTopic is an internal topic with one message, which whoever runs the recovery holds, and the versions that were
// seen. Pausing the topic pauses the recovery everywhere.
const RecovererTopic = "ferry.recovery"

const leaseID = "lease"

var errLease = errors.New("the lease was lost")

// lead waits for the lease of the recovery, runs work while it is held, and gives it back. Work gets a context that ends
// when the lease is lost, before another can have it.
func (r *Recoverer) lead(ctx context.Context, work func(ctx context.Context) error) (err error) {
	if err := r.queue.layLease(ctx); err != nil {
		return err
	}
	sub, err := r.queue.driver.Subscribe(ctx, driver.SubscribeOptions{Topic: RecovererTopic, Instance: r.o.Instance, Lease: r.lease, MaxInflight: 1})
	if err != nil {
		return err
	}
	defer func() {
		if closed := leave(ctx, sub); err == nil {
			err = closed
		}
	}()
	ds, err := sub.Receive(ctx, 1)
	if err != nil {
		return err
	}
	return whileHeld(ctx, sub, ds[0], r.lease, func(ctx context.Context) error {
		r.leading(true)
		defer r.leading(false)
		return work(ctx)
	})
}

// leave closes a subscription, even when ctx has ended.
func leave(ctx context.Context, sub driver.Subscription) error {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return sub.Close(limited)
}

// whileHeld runs work while the lease of a delivery is kept. Its context ends before another can have the message.
func whileHeld(ctx context.Context, sub driver.Subscription, d *driver.Delivery, lease time.Duration, work func(ctx context.Context) error) error {
	held, lose := context.WithCancelCause(ctx)
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		keep(held, sub, d, lease, lose)
	}()
	err := work(held)
	lose(nil)
	<-kept
	if errors.Is(context.Cause(held), errLease) {
		err = errLease
	}
	return err
}

// keep extends the lease every third of it, and calls lose before it ends without that.
func keep(ctx context.Context, sub driver.Subscription, d *driver.Delivery, lease time.Duration, lose context.CancelCauseFunc) {
	until, margin, every := d.LeaseUntil, lease/10, lease/3
	timer := time.NewTimer(min(every, time.Until(until)/2))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		before := time.Now()
		call, cancel := context.WithDeadline(ctx, until.Add(-margin))
		err := answer(sub.Extend(call, []*driver.Delivery{d}), 0)
		cancel()
		switch {
		case err == nil:
			until = before.Add(lease)
			timer.Reset(every)
		case errors.Is(err, driver.ErrLeaseLost) || !time.Now().Before(until.Add(-margin)):
			lose(errLease)
			return
		default:
			timer.Reset(min(every, max(lease/20, time.Until(until.Add(-margin)))))
		}
	}
}

// layLease makes sure that the message is there which is the lease.
func (q *Queue) layLease(ctx context.Context) error {
	_, err := q.driver.Get(ctx, driver.Target{Topic: RecovererTopic, ID: leaseID})
	if err == nil || !errors.Is(err, driver.ErrNotFound) {
		return err
	}
	m := &driver.Message{ID: leaseID, OwnID: true, Topic: RecovererTopic, Body: []byte("whoever holds this message runs the recovery of dead letters"), ContentType: "text/plain"}
	receipts, err := q.driver.Publish(ctx, []*driver.Message{m}, driver.PublishOptions{})
	if len(receipts) == 1 && receipts[0].Err == nil {
		return nil // stored, or somebody else was first
	}
	return err
}

// deployedAt returns since when the present version is the newest that was seen, by the backend's clock. It notes the
// version if it is new.
func (q *Queue) deployedAt(ctx context.Context, version string) (time.Time, error) {
	for range 2 {
		p, err := q.driver.Browse(ctx, driver.Query{Topic: RecovererTopic, State: driver.StateHeld, Limit: 1000})
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
				older = append(older, driver.Target{Topic: RecovererTopic, Ref: old.Ref, ID: old.ID})
			}
		}
		if newest.Message != nil && string(newest.Body) == version {
			q.delete(ctx, older) // what stays is deleted the next time
			return newest.PublishedAt, nil
		}
		previous := ""
		if newest.Message != nil {
			previous = newest.ID
		}
		m := &driver.Message{ID: driver.EmitID("version/"+version+"/"+previous, 0), OwnID: true, Topic: RecovererTopic, Body: []byte(version), Delay: driver.Hold}
		if _, err := q.driver.Publish(ctx, []*driver.Message{m}, driver.PublishOptions{}); err != nil {
			return time.Time{}, err
		}
	}
	return time.Time{}, fmt.Errorf("version %q was noted, and is not the newest: another version runs the recovery too", version)
}
