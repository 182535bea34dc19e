package result

import (
	"context"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// Return keeps value as the result of the message being handled, encoded with the first codec of the broker; bytes are
// kept as they are. It is there for others when Return returns, so call it last: return result.Return(ctx, value). If
// the handler fails after it, how it failed takes its place.
//
// An error means that the result is not kept: it is too large (driver.MaxValue is 64 KiB), there is no room, the broker
// is away, or a later delivery of the message has written its own. A handler that returns that error is tried again.
func Return[T any](ctx context.Context, value T) error {
	r, err := recordOf(ctx, "Return")
	if err != nil {
		return err
	}
	m, err := ferry.NewMessage(ctx, r.broker, r.topic, value)
	if err != nil {
		return err
	}
	if m.Body == nil {
		m.Body = []byte{}
	}
	if err := r.put(ctx, Status{State: Done, Body: m.Body, ContentType: m.ContentType}); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.returned = true
	return nil
}

// progressEvery is how often progress is written at most.
const progressEvery = 500 * time.Millisecond

// Progress tells how far the handler is, for those who ask with Get. It is written at most twice a second: what comes
// sooner is written with the next, and the last of all when the handler ends. Outside a handler whose results are kept
// it does nothing, and it never fails the handler.
func Progress(ctx context.Context, done, total int64, note string) {
	r, err := recordOf(ctx, "Progress")
	if err != nil || !r.steps(Step{done, total, note}) {
		return
	}
	if err := r.put(ctx, Status{State: Running}); err != nil {
		r.k.notKept(ctx, r.d, err)
	}
}

// steps notes a step, and reports whether to write it now.
func (r *record) steps(s Step) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.step = s
	now := time.Now()
	if r.returned || !r.stepped.IsZero() && now.Sub(r.stepped) < progressEvery {
		return false
	}
	r.stepped = now
	return true
}

func recordOf(ctx context.Context, call string) (*record, error) {
	r, ok := ctx.Value(recordKey{}).(*record)
	if !ok {
		return nil, driver.NewError(ferry.ErrInvalid, call+" outside a handler whose results are kept",
			"give it the handler's context, and the handler worker.Use with the middleware of result.Keep", nil)
	}
	return r, nil
}
