package kafka

import (
	"context"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/publisher"
)

// Publish stores messages: those due now in their topic, the others among the delayed.
func (d *Driver) Publish(ctx context.Context, msgs []*driver.Message, o driver.PublishOptions) ([]driver.Receipt,
	error) {
	return d.publisher.Publish(ctx, msgs, o, publisher.Bounds)
}

var _ driver.Pipeliner = (*Driver)(nil)

// Send begins a Publish. What later calls send comes behind it.
func (d *Driver) Send(ctx context.Context, msgs []*driver.Message, o driver.PublishOptions) func() ([]driver.Receipt,
	error) {
	return d.publisher.Dispatch(ctx, context.WithoutCancel(ctx), msgs, o, publisher.Bounds, false)
}
