package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// Handle registers a handler for the messages of a topic, decoded into T. A body that does not decode is a dead letter
// at once (invalid_message); one whose codec waits in vain for a schema registry is retried. What is wrong with a
// registration is returned by Check and Run.
func Handle[T any](w *Worker, topic string, handler func(ctx context.Context, m *ferry.Msg[T]) error,
	opts ...HandlerOption) {
	if w == nil {
		return // Run on a nil worker says so
	}
	r := &registration{topic: topic}
	if handler != nil {
		b := w.broker
		r.handle = func(ctx context.Context, d *ferry.Delivery) error {
			m, err := ferry.Decode[T](ctx, b, d)
			if err != nil {
				return undecoded(err)
			}
			return handler(ctx, m)
		}
	}
	w.register(r, opts)
}

// undecoded is the outcome of a body that was not decoded: a dead letter, or a retry if what the codec asked did not
// answer.
func undecoded(err error) error {
	if errors.Is(err, ferry.ErrInvalid) {
		return Dead(driver.ReasonInvalidMessage, err)
	}
	return err
}

// HandleRaw registers a handler for the messages of a topic as they are. It is what Handle is built on.
func HandleRaw(w *Worker, topic string, handler func(ctx context.Context, d *ferry.Delivery) error,
	opts ...HandlerOption) {
	if w == nil {
		return
	}
	w.register(&registration{topic: topic, handle: handler}, opts)
}

// registration is one handler with its settings.
type registration struct {
	topic  string
	handle Handler
	batch  batchHandler // instead of handle
	quiet  bool         // as Quiet said before Run
	handlerSettings
}

func (w *Worker) register(r *registration, opts []HandlerOption) {
	w.mu.Lock()
	r.handlerSettings = w.handlerDefaults()
	w.mu.Unlock()
	for _, o := range opts {
		if o != nil {
			o(&r.handlerSettings)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.began {
		w.problems = append(w.problems, tooLate(r))
		w.log.Error("a handler was registered after Run began, and gets nothing", "topic", r.topic, "group", r.group)
		return
	}
	w.problems = append(w.problems, w.check(r)...)
	w.handlers = append(w.handlers, r)
}

// checkPriority refuses strict priority where an urgent message may wait behind what was read ahead.
func (w *Worker) checkPriority(r *registration) []error {
	if !r.strictPriority || w.broker == nil {
		return nil
	}
	caps := w.broker.Driver().Capabilities()
	if caps.KeyedPriority == driver.PriorityEverywhere {
		return nil
	}
	return []error{driver.NewError(ferry.ErrUnsupported,
		fmt.Sprintf("handler of topic %q, group %q: %s cannot hold strict priority: it reaches as far as the %s",
			r.topic, r.group, caps.Driver, caps.KeyedPriority),
		"use worker.Weights, a topic for each priority, or a memory, disk or redis broker", nil)}
}

// checkSubscription returns what the broker would refuse whatever it holds: a lease that is too short for it, for
// example.
func (w *Worker) checkSubscription(r *registration) error {
	_, err := r.subscription(r.topic, w.options.Instance).Resolve(w.broker.Driver().Capabilities())
	var e *driver.Error
	if errors.As(err, &e) {
		return driver.NewError(e.Kind, fmt.Sprintf("handler of topic %q, group %q: %s", r.topic, r.group, e.Text),
			e.Hint, e.Cause)
	}
	return err
}

// tooLate is what is wrong with a registration while the worker runs.
func tooLate(r *registration) error {
	return driver.NewError(ferry.ErrInvalid,
		fmt.Sprintf("handler of topic %q, group %q: it was registered after Run began, and gets nothing", r.topic, r.group),
		"register handlers before Run, since they share its slots and its stop; for one that comes later run another "+
			"worker on the same broker", nil)
}

// check returns everything that is wrong with a registration. w.mu is held.
func (w *Worker) check(r *registration) []error {
	var errs []error
	bad := func(hint, format string, args ...any) {
		text := fmt.Sprintf("handler of topic %q, group %q: ", r.topic, r.group) + fmt.Sprintf(format, args...)
		errs = append(errs, driver.NewError(ferry.ErrInvalid, text, hint, nil))
	}
	if err := driver.CheckTopic(r.topic); err != nil {
		errs = append(errs, err)
	}
	if err := driver.CheckName("group", r.group); err != nil {
		errs = append(errs, err)
	}
	for _, h := range w.handlers {
		if h.topic == r.topic && h.group == r.group {
			bad("give one of them another worker.Group", "it has two handlers")
			break
		}
	}
	if r.handle == nil && r.batch == nil {
		bad("give it a function", "the handler is nil")
	}
	r.checkNumbers(bad)
	errs = append(errs, w.checkPriority(r)...)
	if r.handle != nil && r.batchSet {
		bad("register it with HandleBatch, or leave BatchSize and BatchWait out",
			"a handler of single messages has options of a batch")
	}
	if len(errs) == 0 && w.broker != nil {
		if err := w.checkSubscription(r); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}
