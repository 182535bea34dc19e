package gateway

import (
	"context"

	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/frame"
)

// log returns the log of the broker, for who may do something with a topic of it.
func (g *Gateway) log(ctx context.Context, s auth.Scope, topic string) (driver.Log, error) {
	if err := may(ctx, s, topic); err != nil {
		return nil, err
	}
	return g.broker.Log()
}

func (g *Gateway) partitions(ctx context.Context, q *frame.Place) (frame.Value, error) {
	l, err := g.log(ctx, auth.View, q.Topic)
	if err != nil {
		return nil, err
	}
	ps, err := l.Partitions(ctx, q.Topic)
	return (*frame.Partitions)(&ps), err
}

func (g *Gateway) pending(ctx context.Context, q *frame.PendingQuery) (frame.Value, error) {
	l, err := g.log(ctx, auth.View, q.Topic)
	if err != nil {
		return nil, err
	}
	p, err := l.Pending(ctx, driver.PendingQuery(*q))
	return (*frame.PendingPage)(&p), err
}

func (g *Gateway) replay(ctx context.Context, q *frame.Replay) (frame.Value, error) {
	var r driver.ResetReport
	l, err := g.log(ctx, auth.Operate, q.Topic)
	if err == nil {
		r, err = l.Replay(ctx, q.Topic, q.Group, q.Options)
	}
	g.record(ctx, auth.Action{What: "group.replay", Topic: q.Topic, Group: q.Group}, err)
	return (*frame.ResetReport)(&r), err
}

func (g *Gateway) logRange(ctx context.Context, q *frame.RangeQuery) (frame.Value, error) {
	if err := g.mayBrowse(ctx, q.Topic); err != nil {
		return nil, err
	}
	l, err := g.broker.Log()
	if err != nil {
		return nil, err
	}
	p, err := l.Range(ctx, driver.RangeQuery(*q))
	return (*frame.RangePage)(&p), err
}

func (g *Gateway) retain(ctx context.Context, q *frame.Retain) (frame.Value, error) {
	l, err := g.log(ctx, auth.Operate, q.Topic)
	if err == nil {
		err = l.Retain(ctx, q.Topic, q.Retention)
	}
	g.record(ctx, auth.Action{What: "topic.retain", Topic: q.Topic}, err)
	return done(err)
}

func (g *Gateway) retention(ctx context.Context, q *frame.Place) (frame.Value, error) {
	l, err := g.log(ctx, auth.View, q.Topic)
	if err != nil {
		return nil, err
	}
	r, err := l.Retention(ctx, q.Topic)
	return (*frame.Retention)(&r), err
}

func (g *Gateway) trim(ctx context.Context, q *frame.Place) (frame.Value, error) {
	var r driver.TrimReport
	l, err := g.log(ctx, auth.Operate, q.Topic)
	if err == nil {
		r, err = l.Trim(ctx, q.Topic)
	}
	g.record(ctx, auth.Action{What: "topic.trim", Topic: q.Topic}, err)
	return (*frame.TrimReport)(&r), err
}
