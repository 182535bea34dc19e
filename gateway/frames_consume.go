package gateway

import (
	"context"
	"time"

	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/frame"
)

func (g *Gateway) publishFrames(ctx context.Context, q *frame.Publish) (frame.Value, error) {
	for _, m := range q.Messages {
		if m == nil {
			return nil, driver.NewError(driver.ErrInvalid, "a message is missing", "send one for each", nil)
		}
		if err := may(ctx, auth.Publish, m.Topic); err != nil {
			return nil, err
		}
	}
	receipts, err := g.driver.Publish(ctx, q.Messages, q.Options)
	if len(receipts) != len(q.Messages) {
		return nil, err
	}
	return (*frame.Receipts)(&receipts), nil // they carry the error
}

func (g *Gateway) subscribe(ctx context.Context, q *frame.Subscribe) (frame.Value, error) {
	if err := may(ctx, auth.Consume, q.Options.Topic); err != nil {
		return nil, err
	}
	s, err := g.sessions.open(ctx, g.driver, auth.From(ctx).String(), q.Options)
	if err != nil {
		return nil, err
	}
	return &frame.Session{ID: s.id}, nil
}

// with runs a call of a session. Who may use it was asked when it was opened, but grants may have changed since.
func (g *Gateway) with(ctx context.Context, id string, f func(s *session) (frame.Value, error)) (frame.Value, error) {
	s, free, err := g.sessions.use(id, auth.From(ctx).String())
	if err != nil {
		return nil, err
	}
	defer free()
	if err := may(ctx, auth.Consume, s.o.Topic); err != nil {
		return nil, err
	}
	return f(s)
}

func (g *Gateway) receive(ctx context.Context, q *frame.Receive) (frame.Value, error) {
	start := time.Now()
	return g.with(ctx, q.Session, func(s *session) (frame.Value, error) {
		got, err := s.receive(ctx, q, g.o.Poll)
		if err != nil {
			return nil, err
		}
		return &frame.Deliveries{Served: got.at.Sub(start), Deliveries: got.deliveries}, nil
	})
}

func (g *Gateway) stop(ctx context.Context, q *frame.Receive) (frame.Value, error) {
	return g.with(ctx, q.Session, func(s *session) (frame.Value, error) {
		s.stop(q.Number)
		return done(nil)
	})
}

func (g *Gateway) begin(ctx context.Context, q *frame.Held) (frame.Value, error) {
	return g.with(ctx, q.Session, func(s *session) (frame.Value, error) {
		errs := s.begin(ctx, q.Handles)
		return (*frame.Errors)(&errs), nil
	})
}

func (g *Gateway) extend(ctx context.Context, q *frame.Held) (frame.Value, error) {
	return g.with(ctx, q.Session, func(s *session) (frame.Value, error) {
		errs := s.extend(ctx, q.Handles)
		return (*frame.Errors)(&errs), nil
	})
}

func (g *Gateway) settle(ctx context.Context, q *frame.Settle) (frame.Value, error) {
	for i := range q.Settlements {
		for _, m := range q.Settlements[i].Emit {
			if m == nil {
				return nil, driver.NewError(driver.ErrInvalid, "a follow-up is missing", "send one for each", nil)
			}
			if err := may(ctx, auth.Publish, m.Topic); err != nil {
				return nil, err
			}
		}
	}
	return g.with(ctx, q.Session, func(s *session) (frame.Value, error) {
		errs := s.settle(ctx, q.Handles, q.Settlements)
		return (*frame.Errors)(&errs), nil
	})
}

func (g *Gateway) drain(ctx context.Context, q *frame.Session) (frame.Value, error) {
	return g.with(ctx, q.ID, func(s *session) (frame.Value, error) { return done(s.sub.Drain(ctx)) })
}

// closeSession ends a session. One that is not there any more is closed.
func (g *Gateway) closeSession(ctx context.Context, q *frame.Session) (frame.Value, error) {
	s, free, err := g.sessions.use(q.ID, auth.From(ctx).String())
	if err != nil {
		return done(nil)
	}
	defer free()
	return done(g.sessions.end(ctx, s))
}

func (g *Gateway) revoked(ctx context.Context, q *frame.Session) (frame.Value, error) {
	ctx, cancel := g.waiting(ctx, g.o.Poll)
	defer cancel()
	return g.with(ctx, q.ID, func(s *session) (frame.Value, error) { return s.revocation(ctx), nil })
}
