package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

const (
	leadPrefix = driver.LeadBucket + "." // and the duty: the bucket of a leader's lease and of what is written under it
	leaseName  = "lease"
	maxDuty    = driver.MaxNameLen - len(leadPrefix)
)

// Lead waits until this process leads a duty, runs work, and goes on so until ctx ends or work returns by itself. Of
// all processes that call it one leads at a time: after a kill another does within DefaultTTL and a second, after an
// orderly end as soon as work has returned. The name of a duty is 1 to 123 letters, digits, '.', '_' or '-', beginning
// with a letter or digit.
//
// The context of work ends with ctx, and when the lead is lost, in time before another can have it; work should then
// return, and leads again when its turn comes. What it writes should carry Lock.Fence, in the bucket LeadBucket(duty),
// or Lock.Epoch: it may be paused for longer than it leads.
//
// Lead returns nil when ctx ends, what work returned when that was by itself, and errors of the broker that trying
// again cannot mend.
func Lead(ctx context.Context, b *ferry.Broker, duty string, work func(ctx context.Context, l *Lock) error) error {
	if work == nil {
		return driver.NewError(ferry.ErrInvalid, fmt.Sprintf("the work of duty %q is nil", duty), "give it a function", nil)
	}
	if err := checkDuty(duty); err != nil {
		return err
	}
	for {
		l, err := acquire(ctx, context.WithoutCancel(ctx), b, leaseName, LockOptions{Bucket: LeadBucket(duty)}, true)
		switch {
		case ctx.Err() != nil:
			return giveUp(ctx, l)
		case err != nil:
			return err
		}
		lost, err := lead(ctx, l, work)
		switch {
		case ctx.Err() != nil && stopped(err):
			return nil
		case !lost || !stopped(err):
			return err
		}
		b.Logger().WarnContext(ctx, "the lead was lost; it is tried again", "duty", duty)
	}
}

// checkDuty says what is wrong with the name of a duty, or nil.
func checkDuty(duty string) error {
	if err := driver.CheckName("duty", duty); err != nil || len(duty) <= maxDuty {
		return err
	}
	return driver.NewError(ferry.ErrInvalid, fmt.Sprintf("the name of a duty has %d bytes", len(duty)),
		fmt.Sprintf("use at most %d", maxDuty), nil)
}

// stopped reports whether work ended because it was told to.
func stopped(err error) bool {
	return err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, ferry.ErrLeaseLost)
}

// Led reports whether some process leads a duty. After a kill it does so until the lease has ended.
func Led(ctx context.Context, b *ferry.Broker, duty string) (bool, error) {
	if err := checkDuty(duty); err != nil {
		return false, err
	}
	lease, err := b.Driver().KV().Get(ctx, LeadBucket(duty), leaseName)
	return err == nil && lease[0].Revision != 0, err
}

// LeadBucket is the bucket of a duty: its lease, and the state that its leader keeps under Lock.Fence.
func LeadBucket(duty string) string { return leadPrefix + duty }

// lead does the work under the lease until ctx ends, and reports whether it was lost before the work ended. It keeps
// the lease until then: work that takes its time to end still leads.
func lead(ctx context.Context, l *Lock, work func(ctx context.Context, l *Lock) error) (lost bool, err error) {
	working, end := context.WithCancelCause(l.Context())
	ended := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
	defer func() {
		ended()
		lost = l.Err() != nil
		end(nil)
		_ = l.Release(context.WithoutCancel(l.ctx)) // otherwise it ends by itself
	}()
	return false, work(working, l)
}

// giveUp releases a lease that came too late; l may be nil.
func giveUp(ctx context.Context, l *Lock) error {
	if l == nil {
		return nil
	}
	return l.Release(context.WithoutCancel(ctx))
}
