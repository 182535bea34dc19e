package drivertest

import (
	"context"
	"time"

	"github.com/ferrymq/ferry/driver"
)

func settleDefects() []Defect {
	return []Defect{
		{"how long a handler took is forgotten", settling(func(x *driver.Settlement) { x.Took = 0 }), []string{endingCase},
			false},
		{"who settled a message is forgotten", func(d driver.Driver) driver.Driver {
			return &broken{Driver: d, page: func(p *driver.Page) {
				for i := range p.Entries {
					if p.Entries[i].State == driver.StateDone {
						p.Entries[i].Instance = ""
					}
				}
			}}
		}, []string{endingCase}, false},
		{"stale settlement accepted", staleAccepted,
			[]string{"lease/stale settle refused", "lease/settled only once", "order/retry in a run returns the tail",
				"input/foreign deliveries"}, true},
		{"stale extend accepted", staleExtended, []string{"lease/stale extend refused"}, true},
		{"extend without effect", extendIgnored, []string{"lease/extend keeps it", "lease/extend is a full lease"}, true},
		{"release to the tail", releaseToTail, []string{"release/to the head", "release/counts nothing"}, true},
		{"retry burns no attempt", settling(func(x *driver.Settlement) {
			if x.Outcome == driver.Retry {
				x.Outcome = driver.Release
			}
		}), []string{"retry/now", "retry/history grows"}, true},
		{"release burns an attempt", settling(func(x *driver.Settlement) {
			if x.Outcome == driver.Release {
				x.Outcome = driver.Retry
			}
		}), []string{"release/counts nothing", "release/park counts nothing"}, true},
		{"waits cut in half", settling(func(x *driver.Settlement) { x.After /= 2 }),
			[]string{"retry/never early", "release/park counts nothing"}, true},
		{"retry of a run keeps its tail", tailKept, []string{"order/retry in a run returns the tail",
			"order/release of a run returns the tail"}, true},
		{"an outcome overtakes one that was refused", settledApart, []string{"order/outcomes of a key"}, false},
		{"failures not kept", settling(func(x *driver.Settlement) { x.Failure = nil }),
			[]string{"retry/history grows", "dead/complete"}, false},
		{"drop loses its count", settling(func(x *driver.Settlement) {
			if x.Outcome == driver.Drop {
				x.Outcome = driver.Ack
			}
		}), []string{"retry/drop is counted"}, true},
		{"a retry is given back instead", settling(func(x *driver.Settlement) {
			if x.Outcome == driver.Retry {
				x.Outcome = driver.Release
			}
		}), []string{"retry/now", "retry/failures are counted"}, true},
		{"emit dropped", settling(func(x *driver.Settlement) { x.Emit = nil }),
			[]string{"emit/with the ack", "emit/with each outcome", "emit/delayed"}, true},
		{"emit of a stale settlement applied", emitFirst, []string{"lease/stale settle refused"}, true},
		{"close keeps the leases", func(d driver.Driver) driver.Driver {
			return &broken{Driver: d, leave: func(context.Context, driver.Subscription) error { return nil }}
		}, []string{"stop/close returns what is held", "stop/close leaves the group"}, true},
	}
}

func staleAccepted(d driver.Driver) driver.Driver {
	return &broken{Driver: d, settle: func(ctx context.Context, below driver.Subscription,
		ss []driver.Settlement) []error {
		return hiding(below.Settle(ctx, ss), driver.ErrLeaseLost)
	}}
}

func staleExtended(d driver.Driver) driver.Driver {
	return &broken{Driver: d, extend: func(ctx context.Context, below driver.Subscription, ds []*driver.Delivery) []error {
		return hiding(below.Extend(ctx, ds), driver.ErrLeaseLost)
	}}
}

func extendIgnored(d driver.Driver) driver.Driver {
	return &broken{Driver: d, extend: func(_ context.Context, _ driver.Subscription, ds []*driver.Delivery) []error {
		return make([]error, len(ds))
	}}
}

// releaseToTail gives a message back by publishing it again.
func releaseToTail(d driver.Driver) driver.Driver {
	b := &broken{Driver: d}
	b.settle = func(ctx context.Context, below driver.Subscription, ss []driver.Settlement) []error {
		var errs []error
		for _, x := range ss {
			back := x.Outcome == driver.Release && x.After <= 0
			if back {
				x.Outcome = driver.Drop
			}
			err := below.Settle(ctx, []driver.Settlement{x})[0]
			if back && err == nil {
				m := x.Delivery.Clone()
				m.Delay, m.At, m.DedupID, m.DedupWindow = 0, time.Time{}, "", 0
				_, err = b.Driver.Publish(ctx, []*driver.Message{m}, driver.PublishOptions{})
			}
			errs = append(errs, err)
		}
		return errs
	}
	return b
}

// tailKept says that the tail of a run is still held after a retry or release in front of it.
func tailKept(d driver.Driver) driver.Driver {
	b := &broken{Driver: d}
	b.settle = func(ctx context.Context, below driver.Subscription, ss []driver.Settlement) []error {
		errs := below.Settle(ctx, ss)
		for i, x := range ss {
			if x.Outcome == driver.Ack && x.Delivery.Check() == nil && x.Delivery.Key != "" && x.Delivery.Attempt == 1 {
				errs[i] = hiding(errs[i:i+1], driver.ErrLeaseLost)[0]
			}
		}
		return errs
	}
	return b
}

// settledApart applies each settlement by itself, whatever became of those before it.
func settledApart(d driver.Driver) driver.Driver {
	return &broken{Driver: d, settle: func(ctx context.Context, below driver.Subscription,
		ss []driver.Settlement) []error {
		errs := make([]error, len(ss))
		for i := range ss {
			errs[i] = below.Settle(ctx, ss[i:i+1])[0]
		}
		return errs
	}}
}

// emitFirst publishes follow-ups before it looks at the lease.
func emitFirst(d driver.Driver) driver.Driver {
	b := &broken{Driver: d}
	b.settle = func(ctx context.Context, below driver.Subscription, ss []driver.Settlement) []error {
		for i := range ss {
			if len(ss[i].Emit) > 0 {
				_, _ = b.Driver.Publish(ctx, ss[i].Emit, driver.PublishOptions{})
				ss[i].Emit = nil
			}
		}
		return below.Settle(ctx, ss)
	}
	return b
}
