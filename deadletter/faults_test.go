package deadletter_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
)

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

func (f *forgetful) Publish(ctx context.Context, ms []*driver.Message,
	o driver.PublishOptions) ([]driver.Receipt, error) {
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
		if r := f.replay(deadletter.ReplayOptions{
			Selection: deadletter.Selection{Topic: topic, Where: k.where(`id < "m150"`)}}); r.Done != 150 {
			k.Errorf("%+v", r)
		}
		if r := f.replay(deadletter.ReplayOptions{
			Selection: deadletter.Selection{Topic: topic, Where: k.where(`id < "m280"`)}, To: "rescue"}); r.Done != 130 {
			k.Errorf("%+v", r)
		}
		if r, err := f.queue.Remove(k.ctx(), deadletter.RemoveOptions{}); err != nil || r.Done != 20 {
			k.Errorf("%+v %v", r, err)
		}
		if a, b := k.counts(topic), k.counts("rescue"); a.Ready != 150 || a.Dead != 0 ||
			a.Cancelled != 150 || b.Ready != 130 {
			k.Errorf("%+v %+v", a, b)
		}
		k.audit()
	})
}
