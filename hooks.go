package ferry

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Hooks are optional functions that are called as things happen. They run in line: keep them short. A hook that
// panics is logged and harms nothing. The message that Publishing and Published are given is used again when they have
// returned: clone what is to be kept.
type Hooks struct {
	// Authorize may refuse a publish or a subscription with an error.
	Authorize func(ctx context.Context, a Access) error
	// Publishing is called with a copy of a message that has its id, before it is checked and sent: by every publish,
	// worker.Emit, and a replay with an edit. It may set headers; what else it changes does not count. The context it
	// returns goes on with the message, to Authorize and Published. A replay without an edit is a step inside the
	// broker, and keeps the headers. Of a message that filters change, Authorize and Publishing see the plain body, and
	// all others what is stored.
	Publishing func(ctx context.Context, m *Message) context.Context

	// Published is told Message, Receipt or Err, and Duration, while the broker is open: also of a message that was not
	// sent because it is refused, as far as it was made ready. (A value that its codec refuses is no message yet.)
	Published func(ctx context.Context, e Event)
	Received  func(ctx context.Context, e Event) // Delivery
	Started   func(ctx context.Context, e Event) // Delivery; the handler is about to run
	Succeeded func(ctx context.Context, e Event) // Delivery, Duration
	Failed    func(ctx context.Context, e Event) // Delivery, Err, Duration; not of what is parked or released
	Settled   func(ctx context.Context, e Event) // Delivery, Outcome; Err when the broker refused it
	LeaseLost func(ctx context.Context, e Event) // Delivery
	Emergency func(ctx context.Context, e Event) // Delivery, Err; its dead letter went to the worker's emergency file

	WorkerStarted func(ctx context.Context, e Event) // Instance
	WorkerStopped func(ctx context.Context, e Event) // Instance, Err
}

// Access is what an Authorize hook decides on.
type Access struct {
	Topic string
	// Group is empty for a publish.
	Group string
	// Message is nil for a subscription.
	Message *Message
}

// Event is what a hook is told. Each hook says which fields it sets, beside Topic, Group and Instance.
type Event struct {
	Topic, Group, Instance string

	Message  *Message
	Receipt  Receipt
	Delivery *Delivery
	Outcome  Outcome
	Err      error
	Duration time.Duration
}

// Guarded returns the hooks with each function kept from panicking through: the logger is told. A broker does so with
// its own.
func (h Hooks) Guarded(log *slog.Logger) Hooks {
	wrap := func(name string, f func(context.Context, Event)) func(context.Context, Event) {
		if f == nil {
			return nil
		}
		return func(ctx context.Context, e Event) {
			defer logPanic(ctx, log, name)
			f(ctx, e)
		}
	}
	out := Hooks{
		Published:     wrap("Published", h.Published),
		Received:      wrap("Received", h.Received),
		Started:       wrap("Started", h.Started),
		Succeeded:     wrap("Succeeded", h.Succeeded),
		Failed:        wrap("Failed", h.Failed),
		Settled:       wrap("Settled", h.Settled),
		LeaseLost:     wrap("LeaseLost", h.LeaseLost),
		Emergency:     wrap("Emergency", h.Emergency),
		WorkerStarted: wrap("WorkerStarted", h.WorkerStarted),
		WorkerStopped: wrap("WorkerStopped", h.WorkerStopped),
	}
	if h.Publishing != nil {
		out.Publishing = publishing(log, h.Publishing)
	}
	if h.Authorize != nil {
		out.Authorize = authorizer(log, h.Authorize)
	}
	return out
}

// shown is the copy of a message that a Publishing hook gets. It is used again, because most tracers choose few
// messages (BenchmarkPublishToAck in telemetry/otel).
type shown struct {
	msg     Message
	headers map[string]string // empty
}

var shownMessages = sync.Pool{New: func() any { return &shown{headers: map[string]string{}} }}

// publishing lets a hook set headers, on a copy, and nothing else.
func publishing(log *slog.Logger,
	f func(context.Context, *Message) context.Context) func(context.Context, *Message) context.Context {
	call := func(ctx context.Context, m *Message) (after context.Context) {
		after = ctx
		defer logPanic(ctx, log, "Publishing")
		if c := f(ctx, m); c != nil {
			after = c
		}
		return after
	}
	return func(ctx context.Context, m *Message) context.Context {
		s := shownMessages.Get().(*shown)
		s.msg, s.msg.Headers = *m, s.headers
		if len(m.Headers) > 0 {
			s.msg.Headers = maps.Clone(m.Headers)
		}
		after := call(ctx, &s.msg)
		if len(s.msg.Headers) > 0 || len(m.Headers) > 0 {
			m.Headers = s.msg.Headers
		}
		if s.msg = (Message{}); len(s.headers) == 0 { // otherwise it is the message's now
			shownMessages.Put(s)
		}
		return after
	}
}

// And returns hooks that call these, then the others. Both must let a message pass; one that panics does not keep the
// other from being called.
func (h Hooks) And(other Hooks) Hooks {
	return Hooks{
		Authorize:     bothAuthorize(h.Authorize, other.Authorize),
		Publishing:    bothPublishing(h.Publishing, other.Publishing),
		Published:     bothTold(h.Published, other.Published),
		Received:      bothTold(h.Received, other.Received),
		Started:       bothTold(h.Started, other.Started),
		Succeeded:     bothTold(h.Succeeded, other.Succeeded),
		Failed:        bothTold(h.Failed, other.Failed),
		Settled:       bothTold(h.Settled, other.Settled),
		LeaseLost:     bothTold(h.LeaseLost, other.LeaseLost),
		Emergency:     bothTold(h.Emergency, other.Emergency),
		WorkerStarted: bothTold(h.WorkerStarted, other.WorkerStarted),
		WorkerStopped: bothTold(h.WorkerStopped, other.WorkerStopped),
	}
}

func bothTold(a, b func(context.Context, Event)) func(context.Context, Event) {
	if a == nil || b == nil {
		return either(a, b, a == nil)
	}
	return func(ctx context.Context, e Event) {
		defer b(ctx, e)
		a(ctx, e)
	}
}

func bothAuthorize(a, b func(context.Context, Access) error) func(context.Context, Access) error {
	if a == nil || b == nil {
		return either(a, b, a == nil)
	}
	return func(ctx context.Context, access Access) error {
		if err := a(ctx, access); err != nil {
			return err
		}
		return b(ctx, access)
	}
}

func bothPublishing(a, b func(context.Context, *Message) context.Context,
) func(context.Context, *Message) context.Context {
	if a == nil || b == nil {
		return either(a, b, a == nil)
	}
	return func(ctx context.Context, m *Message) (after context.Context) {
		after = ctx
		defer func() {
			if c := b(after, m); c != nil {
				after = c
			}
		}()
		if c := a(ctx, m); c != nil {
			after = c
		}
		return after
	}
}

func either[T any](a, b T, second bool) T {
	if second {
		return b
	}
	return a
}

// authorizer makes every answer of an Authorize hook an ErrRefused, a panic included: in doubt nobody passes.
func authorizer(log *slog.Logger, f func(context.Context, Access) error) func(context.Context, Access) error {
	return func(ctx context.Context, a Access) error {
		verdict := driver.NewError(ErrRefused, "the authorise hook panicked", "see the log, and mend the hook", nil)
		func() {
			defer logPanic(ctx, log, "Authorize")
			if err := f(ctx, a); err != nil {
				verdict = driver.NewError(ErrRefused, "access to topic "+a.Topic+" was refused",
					"ask whoever runs this broker for access", err)
			} else {
				verdict = nil
			}
		}()
		if verdict == nil {
			return nil
		}
		return verdict
	}
}

func logPanic(ctx context.Context, log *slog.Logger, hook string) {
	if p := recover(); p != nil {
		log.ErrorContext(ctx, "a hook panicked", "hook", hook, "panic", p)
	}
}
