package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/operation"
)

const (
	defaultMaxStreams = 1000
	streamEvery       = time.Second
	streamQuiet       = 15 * time.Second // after which a comment shows that the stream lives
	streamPatience    = 10 * time.Second // for which a client may take nothing; then it is dropped
)

const eventStream = "text/event-stream"

// writer writes an answer piece by piece. A client that takes nothing for streamPatience is dropped: a write fails
// then.
type writer struct {
	w           http.ResponseWriter
	control     *http.ResponseController
	contentType string
	begun       bool
}

func newWriter(c huma.Context, contentType string) *writer {
	_, w := humago.Unwrap(c)
	return &writer{w: w, control: http.NewResponseController(w), contentType: contentType}
}

func (w *writer) begin() {
	if !w.begun {
		w.begun = true
		w.w.Header().Set("Content-Type", w.contentType)
		w.w.WriteHeader(http.StatusOK)
	}
}

func (w *writer) Write(p []byte) (int, error) {
	w.begin()
	// where it is not supported the server has a deadline of its own
	_ = w.control.SetWriteDeadline(time.Now().Add(streamPatience))
	return w.w.Write(p)
}

// event writes one event of a stream.
func (w *writer) event(name string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, data); err != nil {
		return err
	}
	return w.control.Flush()
}

// alive writes a comment, which shows both sides that the other is there.
func (w *writer) alive() error {
	if _, err := w.Write([]byte(": alive\n\n")); err != nil {
		return err
	}
	return w.control.Flush()
}

// breakOff ends an answer that failed: with a problem if nothing was written, and otherwise so that the client sees
// that it is not whole.
func (a *API) breakOff(c huma.Context, w *writer, err error) {
	if !w.begun {
		a.write(c, a.problem(c.Context(), err))
		return
	}
	if c.Context().Err() == nil {
		a.log.WarnContext(c.Context(), "admin: an answer was broken off", "request", auth.RequestID(c.Context()), "error",
			err)
	}
	panic(http.ErrAbortHandler)
}

// streaming runs a stream if there is room for one more.
func (a *API) streaming(ctx context.Context, run func(context.Context) error) error {
	select {
	case a.streams <- struct{}{}:
	default:
		return driver.NewError(driver.ErrFull, fmt.Sprintf("%d streams are open already", cap(a.streams)),
			"close some, or ask again and again instead", nil)
	}
	defer func() { <-a.streams }()
	return run(ctx)
}

// every calls do at once and then each streamEvery, until ctx ends or do fails. When nothing was written for a while it
// shows that the stream lives.
func (w *writer) every(ctx context.Context, do func() (wrote bool, err error)) error {
	tick := time.NewTicker(streamEvery)
	defer tick.Stop()
	written := time.Now()
	for {
		wrote, err := do()
		if err == nil && !wrote && time.Since(written) >= streamQuiet {
			wrote, err = true, w.alive()
		}
		if err != nil {
			return err
		}
		if wrote {
			written = time.Now()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// streamFigures sends the figures of one topic, or of all, whenever they were looked at.
func (a *API) streamFigures(ctx context.Context, in *showFigures, w *writer) error {
	return a.streaming(ctx, func(ctx context.Context) error {
		var last time.Time
		return w.every(ctx, func() (bool, error) {
			f, _ := a.showFigures(ctx, in) // it cannot fail
			if f.At != nil && !f.At.After(last) {
				return false, nil
			}
			if f.At != nil {
				last = f.At.Time
			}
			return true, w.event("figures", f)
		})
	})
}

// streamOperation sends an operation whenever it has changed, until it has ended.
func (a *API) streamOperation(ctx context.Context, in *operationPath, w *writer) error {
	op, err := a.operationFor(ctx, in.ID, auth.View)
	if err != nil {
		return err
	}
	return a.streaming(ctx, func(ctx context.Context) error {
		for {
			if err := w.event("operation", viewOperation(op)); err != nil || op.State.Ended() {
				return err
			}
			if op, err = a.operations.Next(ctx, op); err != nil {
				if ctx.Err() != nil {
					return nil
				}
				return err
			}
		}
	})
}

// operationMark is what was sent of an operation.
type operationMark struct {
	revision uint64
	state    operation.State
}

// followOperations sends the operations that are open, and then each that changes, as far as whoever asks may see them.
func (a *API) followOperations(ctx context.Context, _ *struct{}, w *writer) error {
	return a.streaming(ctx, func(ctx context.Context) error {
		ops, revision, err := a.operations.Open(ctx)
		sent := map[string]operationMark{}
		for {
			if err == nil {
				err = w.operations(ctx, ops, sent)
			}
			if err != nil {
				return err
			}
			ops, revision, err = a.nextOperations(ctx, revision, w)
			if ctx.Err() != nil {
				return nil
			}
		}
	})
}

// nextOperations waits for changes, and shows that the stream lives while there are none.
func (a *API) nextOperations(ctx context.Context, revision uint64, w *writer) ([]operation.Operation, uint64, error) {
	within, cancel := context.WithTimeout(ctx, streamQuiet)
	defer cancel()
	ops, next, err := a.operations.Changes(within, revision)
	switch {
	case err != nil && within.Err() != nil:
		return nil, revision, w.alive()
	case errors.Is(err, driver.ErrNotFound): // more has changed than is remembered
		return a.operations.Open(ctx)
	}
	return ops, next, err
}

// operations sends those that are not as they were sent last: a lock that is renewed changes nothing to see.
func (w *writer) operations(ctx context.Context, ops []operation.Operation, sent map[string]operationMark) error {
	w.begin()
	for _, op := range ops {
		mark := operationMark{op.Revision, op.State}
		if sent[op.ID] == mark || may(ctx, auth.View, operationTopic(op)) != nil {
			continue
		}
		sent[op.ID] = mark
		if err := w.event("operation", viewOperation(op)); err != nil {
			return err
		}
	}
	return w.control.Flush()
}
