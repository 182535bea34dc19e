package guard

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/worker"
)

// Class says what kind of failure an error is, and so what trying again can do.
type Class string

// Classes.
const (
	ClassOK        Class = "ok"
	ClassTransient Class = "transient" // 5xx, network, timeouts, and whatever is not known: try again
	ClassFatal     Class = "fatal"     // 4xx, input that cannot be decoded: trying again cannot help
	ClassLimited   Class = "limited"   // 429: the downstream is well, and wants less
	ClassCancelled Class = "cancelled" // we ended it ourselves
	ClassPutOff    Class = "put_off"   // parked or dropped on purpose
)

// ClassOf tells the class of an error, whoever made it.
func ClassOf(err error) Class {
	if err == nil {
		return ClassOK
	}
	var answer *StatusError
	if errors.As(err, &answer) {
		return answer.Class()
	}
	if o, decided := worker.Decided(err); decided {
		switch o {
		case driver.Release, driver.Drop:
			return ClassPutOff
		case driver.Dead:
			return ClassFatal
		default:
			return ClassTransient
		}
	}
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, worker.ErrStopping), errors.Is(err, ferry.ErrLeaseLost):
		return ClassCancelled
	case malformed(err), errors.Is(err, ferry.ErrInvalid), errors.Is(err, ferry.ErrTooLarge),
		errors.Is(err, ferry.ErrUnsupported):
		return ClassFatal
	}
	return ClassTransient
}

func malformed(err error) bool {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	return errors.As(err, &syntax) || errors.As(err, &kind)
}

// Classify makes a handler's error say what its class means: fatal ones become dead letters at once, others are
// retried, after the time that a downstream asked for if it did. Errors that say so themselves stay as they are.
func Classify(err error) error {
	if err == nil {
		return nil
	}
	if _, decided := worker.Decided(err); decided {
		return err
	}
	switch ClassOf(err) {
	case ClassFatal:
		return worker.Fatal(err)
	case ClassCancelled:
		return err // the worker knows why it ended
	}
	if after, ok := retryAfterOf(err); ok {
		return worker.RetryAfter(err, after)
	}
	return worker.Transient(err)
}

func retryAfterOf(err error) (time.Duration, bool) {
	var answer *StatusError
	if errors.As(err, &answer) && answer.RetryAfter > 0 {
		return answer.RetryAfter, true
	}
	return 0, false
}

// ClassifyErrors is a middleware that does Classify to what a handler returns.
func ClassifyErrors(next worker.Handler) worker.Handler {
	return func(ctx context.Context, d *ferry.Delivery) error { return Classify(next(ctx, d)) }
}
