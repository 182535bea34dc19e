package remote

import (
	"context"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/frame"
	"github.com/ferrymq/ferry/internal/framecall"
	"github.com/ferrymq/ferry/internal/refusal"
)

// Publish stores messages. What is too much for one call goes in several, one after the other, unless all must be
// stored in one step.
func (d *Driver) Publish(ctx context.Context, msgs []*driver.Message, o driver.PublishOptions) ([]driver.Receipt,
	error) {
	receipts := make([]driver.Receipt, len(msgs))
	valid, at, err := d.checked(msgs, receipts)
	if len(msgs) == 0 || err != nil && o.Atomic {
		return receipts, refusal.All(receipts, err)
	}
	if o.Atomic {
		d.publish(ctx, valid, at, receipts, o)
		return receipts, refusal.Of(receipts)
	}
	for begin := 0; begin < len(valid); {
		end := begin + fits(valid[begin:], messageSize, d.client.Limit()/2)
		d.publish(ctx, valid[begin:end], at[begin:end], receipts, o)
		begin = end
	}
	return receipts, refusal.Of(receipts)
}

// checked returns the messages that are valid, with their indexes, and the first error of the others, whose receipts
// say it.
func (d *Driver) checked(msgs []*driver.Message, receipts []driver.Receipt) (valid []*driver.Message, at []int,
	first error) {
	for i, m := range msgs {
		if err := m.CheckPublish(d.caps.MaxBody); err != nil {
			if receipts[i].Err = err; first == nil {
				first = err
			}
			continue
		}
		valid, at = append(valid, m), append(at, i)
	}
	return valid, at, first
}

// publish makes one call, and notes its receipts.
func (d *Driver) publish(ctx context.Context, msgs []*driver.Message, at []int, receipts []driver.Receipt,
	o driver.PublishOptions) {
	if len(msgs) == 0 {
		return
	}
	var got frame.Receipts
	err := d.change(ctx, frame.CallPublish, &frame.Publish{Messages: msgs, Options: o}, &got)
	if err == nil && len(got) != len(msgs) {
		err = driver.NewError(driver.ErrUnknown, "the server did not answer for each message",
			"publish again with the same ids", nil)
	}
	for i, n := range at {
		if err != nil {
			receipts[n] = driver.Receipt{Err: err}
			continue
		}
		receipts[n] = got[i]
		receipts[n].Err = framecall.Away(got[i].Err, driver.ErrUnknown)
	}
}

// fits returns how many of the first values go into a call of so many bytes, and at least one.
func fits[T any](vs []T, size func(T) int, limit int) int {
	n, sum := 0, 0
	for n < len(vs) {
		if sum += size(vs[n]); sum > limit && n > 0 {
			break
		}
		n++
	}
	return n
}

// messageSize is about how many bytes a message takes in a call.
func messageSize(m *driver.Message) int {
	const rest = 256 // numbers, and the id
	n := rest + len(m.Body) + len(m.Key) + len(m.Topic)
	for k, v := range m.Headers {
		n += len(k) + len(v) + 8
	}
	return n
}
