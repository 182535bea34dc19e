package drivertest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Defect breaks a driver in one way, to prove that a test can fail.
type Defect struct {
	Name string
	// Wrap returns the driver with the defect.
	Wrap func(driver.Driver) driver.Driver
	// Cases must each fail with it.
	Cases []string
	// History says that random histories must fail with it too.
	History bool
}

// Break returns a harness whose drivers have the defect.
func (f Defect) Break(h Harness) Harness {
	open, plant := h.Open, h.PlantRaw
	h.Open = func(t testing.TB) driver.Driver { return f.Wrap(open(t)) }
	h.PlantRaw = func(ctx context.Context, d driver.Driver, topic string, raw []byte) error {
		return plant(ctx, unwrapped(d), topic, raw)
	}
	return h
}

// Defects returns every defect. Each one is known from a real queue.
func Defects() []Defect {
	return slices.Concat(publishDefects(), deliveryDefects(), settleDefects(), managerDefects(), inputDefects(),
		kvDefects())
}

// editing makes a defect that changes a copy of each message before it is stored.
func editing(edit func(*driver.Message)) func(driver.Driver) driver.Driver {
	return func(d driver.Driver) driver.Driver {
		b := &broken{Driver: d}
		b.publish = func(ctx context.Context, below driver.Driver, ms []*driver.Message,
			o driver.PublishOptions) ([]driver.Receipt, error) {
			return below.Publish(ctx, edited(ms, edit), o)
		}
		return b
	}
}

func edited(ms []*driver.Message, edit func(*driver.Message)) []*driver.Message {
	copies := make([]*driver.Message, len(ms))
	for i, m := range ms {
		if m != nil {
			copies[i] = m.Clone()
			edit(copies[i])
		}
	}
	return copies
}

func publishDefects() []Defect {
	return []Defect{
		{"delay truncated to the second", editing(func(m *driver.Message) {
			if m.Delay != driver.Hold {
				m.Delay = m.Delay.Truncate(time.Second)
			}
		}), []string{"delay/never early", "publish/message arrives whole"}, true},
		{"dedup ignored", editing(func(m *driver.Message) { m.DedupID, m.DedupWindow = "", 0 }),
			[]string{"dedup/inside the window", "dedup/in one batch", "dedup/of a delayed"}, true},
		{"own ids forgotten after the ack", editing(func(m *driver.Message) { m.OwnID = false }), []string{"dedup/own id"},
			false},
		{"expiry ignored", editing(func(m *driver.Message) { m.TTL = 0 }),
			[]string{"expiry/removed and counted", "expiry/never delivered", "expiry/unblocks the key", "expiry/before due",
				"expiry/when returned", "expiry/when returned from a run", "expiry/when its lease is lost"}, true},
		{"priority ignored", editing(func(m *driver.Message) { m.Priority = driver.Normal }),
			[]string{"priority/strict", "delay/keeps priority"}, true},
		{"receipts in the wrong order", receiptsReversed, []string{"publish/receipts in order"}, true},
		{"atomic ignored", optionsDropped(func(o *driver.PublishOptions) { o.Atomic = false }),
			[]string{"atomic/all or nothing"}, false},
		{"durability lowered in silence", optionsDropped(func(o *driver.PublishOptions) { o.Level = 0 }),
			[]string{"publish/levels refused not lowered"}, false},
		{"default group beside others", defaultGroupAlways, []string{"groups/no default beside another"}, true},
		{"caller's body retained", callersBody, []string{"publish/retains nothing"}, false},
		{"keys ignored", keysIgnored, []string{"order/one in flight per key", "order/strict followers wait", "order/run"},
			true},
	}
}

func receiptsReversed(d driver.Driver) driver.Driver {
	return &broken{Driver: d, publish: func(ctx context.Context, below driver.Driver, ms []*driver.Message,
		o driver.PublishOptions) ([]driver.Receipt, error) {
		rs, err := below.Publish(ctx, ms, o)
		slices.Reverse(rs)
		return rs, err
	}}
}

func optionsDropped(drop func(*driver.PublishOptions)) func(driver.Driver) driver.Driver {
	return func(d driver.Driver) driver.Driver {
		return &broken{Driver: d, publish: func(ctx context.Context, below driver.Driver, ms []*driver.Message,
			o driver.PublishOptions) ([]driver.Receipt, error) {
			drop(&o)
			return below.Publish(ctx, ms, o)
		}}
	}
}

func defaultGroupAlways(d driver.Driver) driver.Driver {
	return &broken{Driver: d, publish: func(ctx context.Context, below driver.Driver, ms []*driver.Message,
		o driver.PublishOptions) ([]driver.Receipt, error) {
		rs, err := below.Publish(ctx, ms, o)
		for _, m := range ms {
			err = errors.Join(err, below.EnsureGroup(ctx, m.Topic, driver.DefaultGroup, driver.GroupOptions{}))
		}
		return rs, err
	}}
}

func callersBody(d driver.Driver) driver.Driver {
	b := &broken{Driver: d}
	b.publish = func(ctx context.Context, below driver.Driver, ms []*driver.Message,
		o driver.PublishOptions) ([]driver.Receipt, error) {
		for _, m := range ms {
			b.remember(&driver.Message{ID: m.ID, Body: m.Body})
		}
		return below.Publish(ctx, ms, o)
	}
	b.delivered = func(x *driver.Delivery) {
		if m := b.recall(x.ID); m != nil {
			x.Body = m.Body
		}
	}
	return b
}

// keysIgnored hides the keys from the driver, and shows them to the consumer.
func keysIgnored(d driver.Driver) driver.Driver {
	b := &broken{Driver: d}
	b.publish = func(ctx context.Context, below driver.Driver, ms []*driver.Message,
		o driver.PublishOptions) ([]driver.Receipt, error) {
		for _, m := range ms {
			b.remember(m.Clone())
		}
		return below.Publish(ctx, edited(ms, func(m *driver.Message) { m.Key = "" }), o)
	}
	b.delivered = func(x *driver.Delivery) {
		if m := b.recall(x.ID); m != nil {
			x.Key = m.Key
		}
	}
	return b
}

// showing makes a defect that changes each delivery.
func showing(change func(*driver.Delivery)) func(driver.Driver) driver.Driver {
	return func(d driver.Driver) driver.Driver { return &broken{Driver: d, delivered: change} }
}

// joining makes a defect that changes the options of each subscription.
func joining(change func(*driver.SubscribeOptions)) func(driver.Driver) driver.Driver {
	return func(d driver.Driver) driver.Driver { return &broken{Driver: d, subscribe: change} }
}

func deliveryDefects() []Defect {
	return []Defect{
		{"lost leases not counted", showing(func(d *driver.Delivery) { d.Deliveries = 1 }),
			[]string{"lease/expiry redelivers", "begin/begun losses count"}, true},
		{"unseen losses counted", unseenCounted, []string{"begin/unseen losses do not count", "begin/is of one delivery"},
			true},
		{"first loss not counted", showing(func(d *driver.Delivery) { d.Deliveries = max(1, d.Deliveries-1) }),
			[]string{"lease/expiry redelivers", "begin/unseen losses do not count"}, true},
		{"begin not recorded", func(d driver.Driver) driver.Driver {
			return &broken{Driver: d, begin: func(ds []*driver.Delivery) []error { return make([]error, len(ds)) }}
		}, []string{"begin/begun losses count", "begin/of many, and of the lost"}, true},
		{"counts not taken back", neverTakenBack, []string{"begin/late extend", "begin/late settle",
			"begin/late words of several"}, true},
		{"drain ignored", func(d driver.Driver) driver.Driver {
			return &broken{Driver: d, drain: func() error { return nil }}
		}, []string{"drain/ends receiving"}, false},
		{"claims counted as deliveries", claimsCounted, []string{"release/counts nothing", "stop/close returns what is held"},
			true},
		{"retry burns two attempts", showing(func(d *driver.Delivery) { d.Attempt += d.Attempt - 1 }),
			[]string{"retry/now", "retry/never early"}, true},
		{"cause forgotten", showing(func(d *driver.Delivery) { d.Cause = driver.CauseFirst }),
			[]string{"retry/now", "lease/expiry redelivers", "release/counts nothing", "dead/replay starts over"}, true},
		{"stored body shared", bodyShared, []string{"publish/delivery is the caller's"}, false},
		{"deliveries out of order", shuffled, []string{"publish/order", "order/run", "release/to the head"}, true},
		{"settlement ends with its context", func(d driver.Driver) driver.Driver {
			return &broken{Driver: d, settle: func(ctx context.Context, below driver.Subscription,
				ss []driver.Settlement) []error {
				errs := below.Settle(ctx, ss)
				for i := range errs {
					errs[i] = cmp.Or(errs[i], ctx.Err())
				}
				return errs
			}}
		}, []string{"stop/settle outlives its context"}, false},
		{"what is ready comes late", claimLate, []string{"order/busy key blocks no other",
			"order/busy key blocks no priority", "order/follower wakes a receive"}, false},
		{"cancelled claim lost", claimLost, []string{"stop/cancel loses no claim"}, true},
		{"followers pass a failing head", joining(func(o *driver.SubscribeOptions) { o.Order = driver.Relaxed }),
			[]string{"order/strict followers wait", "order/retry of a run blocks its tail"}, false},
		{"max inflight ignored", joining(func(o *driver.SubscribeOptions) { o.MaxInflight = 0 }),
			[]string{"lease/max inflight"}, true},
		{"max run ignored", joining(func(o *driver.SubscribeOptions) { o.MaxRun = 1000 }),
			[]string{"order/one in flight per key", "order/run"}, true},
		{"low priorities starve", joining(func(o *driver.SubscribeOptions) { o.StrictPriority = true }),
			[]string{"priority/weights hold", "priority/low never starves"}, false},
		{"weights ignored", joining(func(o *driver.SubscribeOptions) { o.Weights = [4]int{1, 1, 1, 1} }),
			[]string{"priority/weights hold"}, false},
	}
}

func claimsCounted(d driver.Driver) driver.Driver {
	b := &broken{Driver: d}
	b.delivered = func(x *driver.Delivery) {
		claims := b.recall(x.ID)
		if claims == nil {
			claims = &driver.Message{ID: x.ID}
			b.remember(claims)
		}
		claims.MaxAttempts++ // any number will do
		x.Deliveries = claims.MaxAttempts
	}
	return b
}

// unseenCounted counts every lost lease as a delivery.
func unseenCounted(d driver.Driver) driver.Driver {
	b := &broken{Driver: d}
	b.delivered = func(x *driver.Delivery) {
		losses := b.recall(x.ID)
		if losses == nil {
			losses = &driver.Message{ID: x.ID}
			b.remember(losses)
		}
		if x.Cause == driver.CauseLeaseExpired {
			losses.MaxAttempts++ // any number will do
		}
		x.Deliveries = 1 + losses.MaxAttempts
	}
	return b
}

// neverTakenBack keeps the count of a holder that spoke again.
func neverTakenBack(d driver.Driver) driver.Driver {
	b := &broken{Driver: d}
	b.delivered = func(x *driver.Delivery) {
		if most := b.recall(x.ID); most != nil {
			x.Deliveries = max(x.Deliveries, most.MaxAttempts)
		}
		b.remember(&driver.Message{ID: x.ID, MaxAttempts: x.Deliveries})
	}
	return b
}

func bodyShared(d driver.Driver) driver.Driver {
	b := &broken{Driver: d}
	b.delivered = func(x *driver.Delivery) {
		if first := b.recall(x.ID); first != nil {
			x.Body = first.Body
			return
		}
		b.remember(&driver.Message{ID: x.ID, Body: x.Body})
	}
	return b
}

func shuffled(d driver.Driver) driver.Driver {
	return &broken{Driver: d, receive: func(ctx context.Context, below driver.Subscription, most int) ([]*driver.Delivery,
		error) {
		ds, err := below.Receive(ctx, most)
		slices.Reverse(ds)
		return ds, err
	}}
}

// claimLate claims when it next looks, which is every second.
func claimLate(d driver.Driver) driver.Driver {
	return &broken{Driver: d, receive: func(ctx context.Context, below driver.Subscription, most int) ([]*driver.Delivery,
		error) {
		select {
		case <-time.After(unit):
		case <-ctx.Done():
		}
		return below.Receive(ctx, most)
	}}
}

// claimLost claims, finds the caller gone, and forgets the claim.
func claimLost(d driver.Driver) driver.Driver {
	b := &broken{Driver: d}
	b.receive = func(ctx context.Context, below driver.Subscription, most int) ([]*driver.Delivery, error) {
		ds, err := below.Receive(ctx, most)
		if _, limited := ctx.Deadline(); limited && err == nil && b.count()%7 == 0 {
			return nil, context.DeadlineExceeded
		}
		return ds, err
	}
	return b
}

// hiding makes a defect that hides errors of one kind.
func hiding(errs []error, kind error) []error {
	for i, err := range errs {
		if errors.Is(err, kind) {
			errs[i] = nil
		}
	}
	return errs
}

// settling makes a defect that changes each settlement.
func settling(change func(*driver.Settlement)) func(driver.Driver) driver.Driver {
	return func(d driver.Driver) driver.Driver {
		return &broken{Driver: d, settle: func(ctx context.Context, below driver.Subscription,
			ss []driver.Settlement) []error {
			ss = slices.Clone(ss)
			for i := range ss {
				change(&ss[i])
			}
			return below.Settle(ctx, ss)
		}}
	}
}
