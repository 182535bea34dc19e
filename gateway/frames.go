package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/frame"
)

// call reads a call of the seam and runs it.
type call func(ctx context.Context, body io.Reader, limit int) (frame.Value, error)

// request is a pointer to a call.
type request[Q any] interface {
	*Q
	frame.Value
}

// typed makes a call of a function.
func typed[Q any, P request[Q]](run func(ctx context.Context, q P) (frame.Value, error)) call {
	return func(ctx context.Context, body io.Reader, limit int) (frame.Value, error) {
		q := P(new(Q))
		if err := frame.Read(body, frame.Bounds{Most: limit}, q); err != nil {
			return nil, err
		}
		return run(ctx, q)
	}
}

// frameCalls are all calls of the seam.
func (g *Gateway) frameCalls() map[string]call {
	return map[string]call{
		frame.CallHello:     typed(g.hello),
		frame.CallPublish:   typed(g.publishFrames),
		frame.CallSubscribe: typed(g.subscribe),
		frame.CallReceive:   typed(g.receive),
		frame.CallStop:      typed(g.stop),
		frame.CallBegin:     typed(g.begin),
		frame.CallSettle:    typed(g.settle),
		frame.CallExtend:    typed(g.extend),
		frame.CallDrain:     typed(g.drain),
		frame.CallClose:     typed(g.closeSession),
		frame.CallRevoked:   typed(g.revoked),

		frame.CallTopics:   typed(g.topics),
		frame.CallStats:    typed(g.stats),
		frame.CallBrowse:   typed(g.browse),
		frame.CallGet:      typed(g.get),
		frame.CallUsage:    typed(g.usage),
		frame.CallDiagnose: typed(g.diagnose),
		frame.CallAudit:    typed(g.audit),

		frame.CallEnsureTopic: typed(g.ensureTopic),
		frame.CallAlterTopic:  typed(g.alterTopic),
		frame.CallDeleteTopic: typed(g.deleteTopic),
		frame.CallEnsureGroup: typed(g.ensureGroup),
		frame.CallDeleteGroup: typed(g.deleteGroup),
		frame.CallPause:       typed(g.pause),
		frame.CallPurge:       typed(g.purge),
		frame.CallDelete:      typed(g.delete),
		frame.CallMove:        typed(g.move),
		frame.CallReset:       typed(g.reset),

		frame.CallKVGet:     typed(g.kvGet),
		frame.CallKVList:    typed(g.kvList),
		frame.CallKVApply:   typed(g.kvApply),
		frame.CallKVWait:    typed(g.kvWait),
		frame.CallKVChanges: typed(g.kvChanges),

		frame.CallGuard: typed(g.guard),

		frame.CallPartitions: typed(g.partitions),
		frame.CallPending:    typed(g.pending),
		frame.CallReplay:     typed(g.replay),
		frame.CallRange:      typed(g.logRange),
		frame.CallRetain:     typed(g.retain),
		frame.CallRetention:  typed(g.retention),
		frame.CallTrim:       typed(g.trim),
	}
}

// serveFrame answers a call of the seam with a frame, an error included.
func (g *Gateway) serveFrame(w http.ResponseWriter, r *http.Request) {
	answer := g.answer(r)
	size := frame.Size(answer)
	if size > maxAnswer {
		answer = &frame.Answer{Err: frame.TooLarge(size, maxAnswer)}
		size = frame.Size(answer)
	}
	w.Header().Set("Content-Type", frame.ContentType)
	w.Header().Set("Content-Length", strconv.Itoa(size))
	w.WriteHeader(statusOf(answer.Err))
	_ = frame.Write(w, answer, size) // who does not read it has gone away
}

// maxAnswer is the largest answer in bytes.
const maxAnswer = 256 << 20

// answer runs a call.
func (g *Gateway) answer(r *http.Request) *frame.Answer {
	run, known := g.calls[r.PathValue("call")]
	switch {
	case auth.From(r.Context()) == nil:
		return &frame.Answer{Err: driver.NewError(driver.ErrRefused, "the call says not who asks", "send a token", nil)}
	case !known:
		return &frame.Answer{Err: driver.NewError(driver.ErrUnsupported,
			fmt.Sprintf("the gateway has no call %.80q", r.PathValue("call")),
			"use the same release of Ferry on both sides", nil)}
	case r.Header.Get("Content-Type") != frame.ContentType:
		return &frame.Answer{Err: driver.NewError(driver.ErrInvalid, "the call is no frame",
			"send Content-Type "+frame.ContentType, nil)}
	}
	v, err := run(r.Context(), r.Body, g.o.MaxFrame)
	return &frame.Answer{Err: unnamed(r.Context(), err), Value: v}
}

// statuses are those of the kinds of errors. The first that fits counts.
var statuses = []struct {
	kind   error
	status int
}{
	{errElsewhere, http.StatusConflict},
	{driver.ErrInvalid, http.StatusBadRequest},
	{driver.ErrRefused, http.StatusForbidden},
	{driver.ErrNotFound, http.StatusNotFound},
	{driver.ErrConflict, http.StatusConflict},
	{driver.ErrLeaseLost, http.StatusConflict},
	{driver.ErrTooLarge, http.StatusRequestEntityTooLarge},
	{driver.ErrFull, http.StatusTooManyRequests},
	{driver.ErrUnsupported, http.StatusNotImplemented},
	{driver.ErrNotApplied, http.StatusServiceUnavailable},
	{driver.ErrClosed, http.StatusServiceUnavailable},
	{driver.ErrUnknown, http.StatusGatewayTimeout},
	{context.Canceled, http.StatusServiceUnavailable}, // nobody reads it
}

// statusOf is the status of an error.
func statusOf(err error) int {
	if err == nil {
		return http.StatusOK
	}
	for _, s := range statuses {
		if errors.Is(err, s.kind) {
			return s.status
		}
	}
	return http.StatusInternalServerError
}

// done is the answer of a call that returns an error only.
func done(err error) (frame.Value, error) {
	if err != nil {
		return nil, err
	}
	return &frame.Nothing{}, nil
}

func (g *Gateway) hello(ctx context.Context, _ *frame.Nothing) (frame.Value, error) {
	c := g.driver.Capabilities()
	return &frame.Welcome{Capabilities: c, Log: driver.LogOf(g.driver) != nil, MaxFrame: g.o.MaxFrame}, nil
}
