// Package leasekeeper renews leases in time: a third of each after it was asked for, sooner after a try that failed,
// and it says when one is lost.
//
// Run is that rhythm alone, for worker: it extends all deliveries of a consumer in one call, and each has an end of its
// own. Lease keeps one lease for somebody who works under it: a lock of cluster, a slot or a mark of guard.
package leasekeeper

import (
	"context"
	"errors"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Usable is how much of a lease its holder relies on: clocks differ in pace, and ending the work takes time.
func Usable(lease time.Duration) time.Duration { return lease - lease/10 }

// Run calls renew a third of a lease after it was asked for, and so on until ctx ends, or renew returns ErrLeaseLost,
// which Run returns. After another error it tries again in a tenth of the lease; a try gets half of the lease, so that
// there is time for another. renew is told when the first try since the last success was made.
func Run(ctx context.Context, asked time.Time, lease time.Duration,
	renew func(ctx context.Context, first time.Time) error) error {
	timer := time.NewTimer(time.Until(asked.Add(lease / 3)))
	defer timer.Stop()
	for first := (time.Time{}); ; {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil
		}
		if first.IsZero() {
			first = time.Now()
		}
		switch err := try(ctx, lease/2, first, renew); {
		case err == nil:
			timer.Reset(time.Until(first.Add(lease / 3)))
			first = time.Time{}
		case errors.Is(err, driver.ErrLeaseLost):
			return err
		default:
			timer.Reset(lease / 10)
		}
	}
}

func try(ctx context.Context, timeout time.Duration, first time.Time,
	renew func(ctx context.Context, first time.Time) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return renew(ctx, first)
}
