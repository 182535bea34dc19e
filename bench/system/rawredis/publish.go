package rawredis

import (
	"context"
	"strconv"

	"github.com/ferrymq/ferry/bench/system"
)

type publisher struct {
	session *session
	fields  []any // id, body, id, body
	ids     []any
}

// KeepsBodies is false: a pipeline is sent before it returns.
func (p *publisher) KeepsBodies() bool { return false }

func (p *publisher) Publish(ctx context.Context, m system.Message) error {
	return p.PublishBatch(ctx, []system.Message{m})
}

func (p *publisher) PublishBatch(ctx context.Context, ms []system.Message) error {
	p.fields, p.ids = p.fields[:0], p.ids[:0]
	last := p.session.lastID.Add(uint64(len(ms)))
	for i, m := range ms {
		id := strconv.FormatUint(last-uint64(i), 36)
		p.fields, p.ids = append(p.fields, id, m.Body), append(p.ids, id)
	}
	pipe := p.session.client.Pipeline()
	pipe.HSet(ctx, bodies, p.fields...)
	pipe.RPush(ctx, ids, p.ids...)
	_, err := pipe.Exec(ctx)
	return err
}

func (p *publisher) PublishAsync(ctx context.Context, m system.Message) error {
	return p.Publish(ctx, m)
}

func (p *publisher) Flush(context.Context) error { return nil }
