package asynq

import (
	"context"

	"github.com/hibiken/asynq"

	"github.com/ferrymq/ferry/bench/system"
)

type publisher struct{ client *asynq.Client }

// KeepsBodies is false: a task is encoded before Enqueue returns.
func (p publisher) KeepsBodies() bool { return false }

func (p publisher) Publish(ctx context.Context, m system.Message) error {
	var opts []asynq.Option
	if m.Delay > 0 {
		opts = append(opts, asynq.ProcessIn(m.Delay))
	}
	_, err := p.client.EnqueueContext(ctx, asynq.NewTask(taskType, m.Body), opts...)
	return err
}

func (p publisher) PublishBatch(ctx context.Context, ms []system.Message) error {
	for _, m := range ms {
		if err := p.Publish(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

func (p publisher) PublishAsync(ctx context.Context, m system.Message) error {
	return p.Publish(ctx, m)
}

func (p publisher) Flush(context.Context) error { return nil }
