package ferry

import (
	"context"
	"log/slog"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Hooks are optional functions that are called as things happen. They run in line: keep them short. A hook that
// panics is logged and harms nothing.
type Hooks struct {
	// Authorize may refuse a publish or a subscription with an error.
	Authorize func(ctx context.Context, a Access) error

	Published func(ctx context.Context, e Event) // Message, Receipt or Err, Duration
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

// guarded returns the hooks with each function kept from panicking through.
func (h Hooks) guarded(log *slog.Logger) Hooks {
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
	if h.Authorize != nil {
		out.Authorize = authorizer(log, h.Authorize)
	}
	return out
}

// authorizer makes every answer of an Authorize hook an ErrRefused, a panic included: in doubt nobody passes.
func authorizer(log *slog.Logger, f func(context.Context, Access) error) func(context.Context, Access) error {
	return func(ctx context.Context, a Access) error {
		verdict := driver.NewError(ErrRefused, "the authorise hook panicked", "see the log, and mend the hook", nil)
		func() {
			defer logPanic(ctx, log, "Authorize")
			if err := f(ctx, a); err != nil {
				verdict = driver.NewError(ErrRefused, "access to topic "+a.Topic+" was refused", "ask whoever runs this broker for access", err)
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
