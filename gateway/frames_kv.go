package gateway

import (
	"context"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/frame"
)

func (g *Gateway) kvGet(ctx context.Context, q *frame.Names) (frame.Value, error) {
	if err := mayKV(ctx, q.Bucket); err != nil {
		return nil, err
	}
	vs, err := g.driver.KV().Get(ctx, q.Bucket, q.Names...)
	return &frame.Values{Values: vs}, err
}

func (g *Gateway) kvList(ctx context.Context, q *frame.KVQuery) (frame.Value, error) {
	if err := mayKV(ctx, q.Bucket); err != nil {
		return nil, err
	}
	p, err := g.driver.KV().List(ctx, driver.KVQuery(*q))
	return &frame.Values{Values: p.Values, Next: p.Next, Revision: p.Revision}, err
}

func (g *Gateway) kvApply(ctx context.Context, q *frame.Writes) (frame.Value, error) {
	if err := mayKV(ctx, q.Bucket); err != nil {
		return nil, err
	}
	results := g.driver.KV().Apply(ctx, q.Bucket, q.Options, q.Writes...)
	return (*frame.WriteResults)(&results), nil
}

func (g *Gateway) kvWait(ctx context.Context, q *frame.Watch) (frame.Value, error) {
	return g.watch(ctx, q, func(ctx context.Context) (*frame.Values, error) {
		v, err := g.driver.KV().Wait(ctx, q.Bucket, q.Name, q.After)
		return &frame.Values{Values: []driver.Value{v}}, err
	})
}

func (g *Gateway) kvChanges(ctx context.Context, q *frame.Watch) (frame.Value, error) {
	return g.watch(ctx, q, func(ctx context.Context) (*frame.Values, error) {
		vs, revision, err := g.driver.KV().Changes(ctx, q.Bucket, q.After)
		return &frame.Values{Values: vs, Revision: revision}, err
	})
}

// watch waits for a change, for as long as a call may take.
func (g *Gateway) watch(ctx context.Context, q *frame.Watch,
	wait func(ctx context.Context) (*frame.Values, error)) (frame.Value, error) {
	if err := mayKV(ctx, q.Bucket); err != nil {
		return nil, err
	}
	ctx, cancel := g.waiting(ctx, g.o.Poll)
	defer cancel()
	vs, err := wait(ctx)
	if g.life.Err() != nil && err != nil {
		return nil, errStopping()
	}
	if err != nil && ctx.Err() != nil {
		return &frame.Values{Again: true}, nil
	}
	return vs, err
}
