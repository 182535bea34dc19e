package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/jsontime"
	"github.com/ferrymq/ferry/result"
)

// status is what is known of a message in a group, in JSON.
type status struct {
	State       result.State    `json:"state"`
	Ended       bool            `json:"ended"`
	Attempt     int             `json:"attempt,omitempty"`
	Error       string          `json:"error,omitempty"`
	Progress    *progress       `json:"progress,omitempty"`
	JSON        json.RawMessage `json:"json,omitempty"`
	Body        *string         `json:"body,omitempty"`
	BodyBase64  []byte          `json:"body_base64,omitempty"`
	ContentType string          `json:"content_type,omitempty"`
	At          *jsontime.Time  `json:"at,omitempty"`
}

type progress struct {
	Done  int64  `json:"done"`
	Total int64  `json:"total"`
	Note  string `json:"note,omitempty"`
}

// serveResult tells how far a message is in a group, and what its handler returned. With wait it is told when that has
// ended.
func (g *Gateway) serveResult(w http.ResponseWriter, r *http.Request) {
	topic, group, id := r.PathValue("topic"), r.PathValue("group"), r.PathValue("id")
	err := mayRead(r.Context(), topic)
	var wait time.Duration
	if text := r.URL.Query().Get("wait"); text != "" && err == nil {
		if wait, err = time.ParseDuration(text); err != nil || wait < 0 || wait > g.o.Poll {
			err = invalid("wait cannot be read, or is too long", "wait at most "+g.o.Poll.String()+", and ask again", nil)
		}
	}
	if err != nil {
		refuse(w, r, err)
		return
	}
	s, err := g.result(r.Context(), topic, group, id, wait)
	if err != nil {
		refuse(w, r, err)
		return
	}
	answer(w, http.StatusOK, statusShown(s))
}

func (g *Gateway) result(ctx context.Context, topic, group, id string, wait time.Duration) (result.Status, error) {
	if wait == 0 {
		return result.Get(ctx, g.broker, topic, group, id)
	}
	ctx, cancel := g.waiting(ctx, wait)
	defer cancel()
	s, err := result.Await(ctx, g.broker, topic, group, id)
	if ctx.Err() != nil && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)) {
		return s, nil // how far it was
	}
	return s, err
}

func statusShown(s result.Status) status {
	out := status{State: s.State, Ended: s.State.Ended(), Attempt: s.Attempt, Error: s.Error, ContentType: s.ContentType,
		At: jsontime.At(s.At)}
	if s.Progress != (result.Step{}) {
		out.Progress = &progress{Done: s.Progress.Done, Total: s.Progress.Total, Note: s.Progress.Note}
	}
	switch {
	case s.Body == nil:
	case isJSON(s.ContentType) && json.Valid(s.Body):
		out.JSON = s.Body
	case utf8.Valid(s.Body):
		body := string(s.Body)
		out.Body = &body
	default:
		out.BodyBase64 = s.Body
	}
	return out
}

// returned is what a handler returned, in JSON: one of three bodies.
type returned struct {
	JSON        json.RawMessage `json:"json,omitempty"`
	Body        *string         `json:"body,omitempty"`
	BodyBase64  []byte          `json:"body_base64,omitempty"`
	ContentType string          `json:"content_type,omitempty"`
}

// bytes are those of the body, and their type.
func (r *returned) bytes() (body []byte, contentType string, err error) {
	m, err := message{JSON: r.JSON, Body: r.Body, BodyBase64: r.BodyBase64, ContentType: r.ContentType}.whole("")
	if err != nil {
		return nil, "", err
	}
	return m.Body, m.ContentType, nil
}

// keepResults keeps what handlers returned, before anything is settled, where there is no error yet. The writes
// overlap: brokers take many of them in one step.
func (g *Gateway) keepResults(ctx context.Context, ss []settlement, ds []*driver.Delivery, errs []error) {
	var writes sync.WaitGroup
	for i, d := range ds {
		if r := ss[i].Result; r != nil && errs[i] == nil {
			writes.Go(func() { errs[i] = g.keepResult(ctx, r, d) })
		}
	}
	writes.Wait()
}

func (g *Gateway) keepResult(ctx context.Context, r *returned, d *driver.Delivery) error {
	body, contentType, err := r.bytes()
	if err != nil {
		return err
	}
	return result.Put(context.WithoutCancel(ctx), g.broker, d, result.Options{}, body, contentType)
}
