package deadletter_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
)

// cutOff is a driver whose subscriptions hear nothing any more once it is off.
type cutOff struct {
	driver.Driver
	off atomic.Bool
}

func (c *cutOff) Subscribe(ctx context.Context, o driver.SubscribeOptions) (driver.Subscription, error) {
	if c.off.Load() {
		return nil, driver.ErrNotApplied
	}
	s, err := c.Driver.Subscribe(ctx, o)
	return &cutSubscription{s, c}, err
}

type cutSubscription struct {
	driver.Subscription
	c *cutOff
}

func (s *cutSubscription) Extend(ctx context.Context, ds []*driver.Delivery) []error {
	if s.c.off.Load() {
		<-ctx.Done() // as a connection that is dead without saying so
		return []error{driver.ErrUnknown}
	}
	return s.Subscription.Extend(ctx, ds)
}

func (s *cutSubscription) Close(ctx context.Context) error {
	if s.c.off.Load() {
		return driver.ErrNotApplied
	}
	return s.Subscription.Close(ctx)
}

// forgetful is a driver that does what it is told, and loses the answer, every other time.
type forgetful struct {
	driver.Driver
	calls atomic.Int64
}

func (f *forgetful) forget(errs []error) []error {
	if f.calls.Add(1)%2 == 0 {
		return errs
	}
	for i := range errs {
		errs[i] = driver.ErrUnknown
	}
	return errs
}

func (f *forgetful) Move(ctx context.Context, ms []driver.Move) []error {
	return f.forget(f.Driver.Move(ctx, ms))
}

func (f *forgetful) Delete(ctx context.Context, ts []driver.Target) []error {
	return f.forget(f.Driver.Delete(ctx, ts))
}

func (f *forgetful) Publish(ctx context.Context, ms []*driver.Message, o driver.PublishOptions) ([]driver.Receipt, error) {
	receipts, err := f.Driver.Publish(ctx, ms, o)
	if f.calls.Add(1)%2 == 0 {
		return receipts, err
	}
	for i := range receipts {
		receipts[i] = driver.Receipt{Err: driver.ErrUnknown}
	}
	return receipts, driver.ErrUnknown
}

// An answer that is lost loses and doubles nothing.
func TestLostAnswers(t *testing.T) {
	virtual(t, func(k *kit) {
		k.ok(k.d.EnsureGroup(k.ctx(), "rescue", driver.DefaultGroup, driver.GroupOptions{}))
		k.dead(slow, numbered("m", 300)...)
		f := newKit(k.T, broker(k.T, shared{&forgetful{Driver: k.d}}))
		if r := f.replay(deadletter.ReplayOptions{Selection: deadletter.Selection{Topic: topic, Where: k.where(`id < "m150"`)}}); r.Done != 150 {
			k.Errorf("%+v", r)
		}
		if r := f.replay(deadletter.ReplayOptions{Selection: deadletter.Selection{Topic: topic, Where: k.where(`id < "m280"`)}, To: "rescue"}); r.Done != 130 {
			k.Errorf("%+v", r)
		}
		if r, err := f.queue.Remove(k.ctx(), deadletter.RemoveOptions{}); err != nil || r.Done != 20 {
			k.Errorf("%+v %v", r, err)
		}
		if a, b := k.counts(topic), k.counts("rescue"); a.Ready != 150 || a.Dead != 0 || a.Cancelled != 150 || b.Ready != 130 {
			k.Errorf("%+v %+v", a, b)
		}
		k.audit()
	})
}

// silent is a driver that stores the first note of a job whose answer then never comes, however often it is asked.
type silent struct {
	driver.Driver
	first string // its id
}

func (s *silent) Publish(ctx context.Context, ms []*driver.Message, o driver.PublishOptions) ([]driver.Receipt, error) {
	receipts, err := s.Driver.Publish(ctx, ms, o)
	if s.first == "" && strings.HasPrefix(ms[0].ID, "note-") {
		s.first = ms[0].ID
	}
	if s.first != "" && ms[0].ID == s.first {
		return []driver.Receipt{{Err: driver.ErrUnknown}}, driver.ErrUnknown
	}
	return receipts, err
}

// A note that may be stored is not overwritten by one that says something else: the next one has a number of its own.
func TestUnknownNoteIsNotTheLast(t *testing.T) {
	virtual(t, func(k *kit) {
		k.dead(slow, numbered("m", 30)...)
		f := newKit(k.T, broker(k.T, shared{&silent{Driver: k.d}}))
		id, err := f.queue.Submit(k.ctx(), deadletter.Job{Topic: topic, Rate: 100})
		k.ok(err)
		stop := f.clerk(nil)
		s := f.job(id, ended)
		stop()
		if s.State != deadletter.JobDone || s.Done != 30 {
			k.Errorf("%+v", s)
		}
	})
}
