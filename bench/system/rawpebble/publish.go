package rawpebble

import (
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/ferrymq/ferry/bench/system"
)

type publisher struct{ session *session }

// KeepsBodies is false: a batch copies them.
func (p *publisher) KeepsBodies() bool { return false }

func (p *publisher) Publish(ctx context.Context, m system.Message) error {
	return p.PublishBatch(ctx, []system.Message{m})
}

func (p *publisher) PublishBatch(_ context.Context, ms []system.Message) error {
	first := p.session.waiting.reserve(len(ms))
	b := p.session.db.NewBatch()
	for i, m := range ms {
		if err := b.Set(key(first+uint64(i)), m.Body, nil); err != nil {
			return errors.Join(err, b.Close())
		}
	}
	if err := errors.Join(b.Commit(pebble.Sync), b.Close()); err != nil {
		return err
	}
	p.session.waiting.add(first, len(ms))
	return nil
}

func (p *publisher) PublishAsync(ctx context.Context, m system.Message) error {
	return p.Publish(ctx, m)
}

func (p *publisher) Flush(context.Context) error { return nil }
