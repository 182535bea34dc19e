package plugin

import (
	"context"
	"fmt"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/codec"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/worker"
)

// hooks returns those of a plugin. The log names it when one panics.
func (p *started) hooks() ferry.Hooks {
	authorize, ask := p.parts.Hooks.Authorize, p.parts.AuthorizeTopic
	h := p.parts.Hooks
	h.Authorize = nil
	h = h.Guarded(p.log)
	if authorize == nil && ask == nil {
		return h
	}
	h.Authorize = func(ctx context.Context, a ferry.Access) error {
		err := p.safely(func() error {
			if authorize != nil {
				if err := authorize(ctx, a); err != nil {
					return err
				}
			}
			if ask != nil {
				return ask(ctx, a.Topic, a.Group)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("plugin %s: %w", p.Name, err)
		}
		return nil
	}
	return h
}

// filter is one of a plugin, which its errors name.
type filter struct {
	codec.Filter
	names []string
	of    *started
}

// Names returns what the plugin said when it started.
func (f filter) Names() []string { return f.names }

// Apply changes a body.
func (f filter) Apply(ctx context.Context, body []byte, a codec.About) (out []byte, encoding string, err error) {
	err = f.of.safely(func() (err error) {
		out, encoding, err = f.Filter.Apply(ctx, body, a)
		return err
	})
	return out, encoding, f.named(ctx, err)
}

// Undo changes it back.
func (f filter) Undo(ctx context.Context, body []byte, encoding string, a codec.About, limit int) (out []byte,
	err error) {
	err = f.of.safely(func() (err error) {
		out, err = f.Filter.Undo(ctx, body, encoding, a, limit)
		return err
	})
	return out, f.named(ctx, err)
}

func (f filter) named(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	f.of.log.WarnContext(ctx, "a filter of a plugin failed", "error", err)
	return fmt.Errorf("plugin %s: %w", f.of.Name, err)
}

// passage is one message on its way through a middleware.
type passage struct {
	arrived, returned bool // at the next handler, and from it
	err               error
}

// passageKey is that of a middleware in the context: each has its own.
type passageKey struct{ of *shielded }

// shielded is a middleware of a plugin around one handler.
type shielded struct {
	plugin *started
	inner  worker.Handler // the middleware
	next   worker.Handler
}

// shield makes a panic of a middleware harmless: what it wraps is called all the same, once. That of a handler passes.
func (p *started) shield(m worker.Middleware) worker.Middleware {
	return func(next worker.Handler) worker.Handler {
		s := &shielded{plugin: p, next: next}
		if err := p.safely(func() error { s.inner = m(s.arrive); return nil }); err != nil || s.inner == nil {
			p.log.Error("a middleware of a plugin could not be made, and is left out", "error", err)
			return next
		}
		return s.handle
	}
}

func (s *shielded) handle(ctx context.Context, d *ferry.Delivery) (err error) {
	way := new(passage)
	defer func() {
		if way.arrived && !way.returned {
			return // the handler panics itself, or ends its goroutine
		}
		v := recover()
		if v == nil {
			return
		}
		s.plugin.log.ErrorContext(ctx, "a middleware of a plugin panicked", "topic", d.Topic, "id", d.ID, "panic", v)
		switch {
		case s.plugin.Required:
			panic(v) // the worker makes it a failed attempt
		case way.returned:
			err = way.err
		default:
			err = s.next(ctx, d)
		}
	}()
	return s.inner(context.WithValue(ctx, passageKey{s}, way), d)
}

// arrive is what the middleware calls as next.
func (s *shielded) arrive(ctx context.Context, d *ferry.Delivery) error {
	way, ok := ctx.Value(passageKey{s}).(*passage)
	if !ok || way.arrived {
		return driver.NewError(ferry.ErrInvalid,
			fmt.Sprintf("middleware of plugin %s called the handler twice, or with another context", s.plugin.Name),
			"call next once, with the context that was given or one made from it", nil)
	}
	way.arrived = true
	way.err = s.next(ctx, d)
	way.returned = true
	return way.err
}
