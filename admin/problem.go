package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/guard"
)

// kinds of errors, and the status and code that each becomes. The detail of one with a fixed text is only logged: it
// may name addresses.
var problems = []struct {
	kind   error
	status int
	code   string
	detail string
}{
	{driver.ErrInvalid, http.StatusBadRequest, api.CodeInvalid, ""},
	{driver.ErrRefused, http.StatusForbidden, api.CodeForbidden, ""},
	{driver.ErrNotFound, http.StatusNotFound, api.CodeNotFound, ""},
	{driver.ErrConflict, http.StatusConflict, api.CodeConflict, ""},
	{driver.ErrLeaseLost, http.StatusConflict, api.CodeConflict, ""},
	{driver.ErrTooLarge, http.StatusRequestEntityTooLarge, api.CodeTooLarge, ""},
	{driver.ErrFull, http.StatusTooManyRequests, api.CodeFull, ""},
	{driver.ErrUnsupported, http.StatusNotImplemented, api.CodeUnsupported, ""},
	{driver.ErrUnknown, http.StatusGatewayTimeout, api.CodeUnknown, "it is not known whether anything changed"},
	{driver.ErrNotApplied, http.StatusServiceUnavailable, api.CodeUnavailable,
		"the broker was not reached, and nothing changed"},
	{driver.ErrClosed, http.StatusServiceUnavailable, api.CodeUnavailable, "the server is stopping"},
	{context.DeadlineExceeded, http.StatusServiceUnavailable, api.CodeUnavailable, "it took too long"},
	{context.Canceled, http.StatusServiceUnavailable, api.CodeUnavailable, "the request was given up"},
}

// problem returns what the client is told of an error. What the client must not see is logged.
func (a *API) problem(ctx context.Context, err error) *api.Problem {
	var p *api.Problem
	if errors.As(err, &p) {
		return p
	}
	for _, known := range problems {
		if !errors.Is(err, known.kind) {
			continue
		}
		p := &api.Problem{Status: known.status, Code: known.code, Detail: known.detail,
			Hint: "try again; the log of the server says more"}
		if known.detail == "" {
			p.Detail, p.Hint = tell(err)
			var e *driver.Error
			if errors.As(err, &e) && e.NamesTopics() && may(ctx, auth.View, "") != nil {
				p.Hint = "see GET /api/v1/topics for those that you may see"
			}
		} else {
			a.log.WarnContext(ctx, "admin: a request failed", "request", auth.RequestID(ctx), "error", err)
		}
		return p
	}
	a.log.ErrorContext(ctx, "admin: a request failed", "request", auth.RequestID(ctx), "error", err)
	return internal()
}

// internal is the problem of a defect, of which only the log says more.
func internal() *api.Problem {
	return &api.Problem{Status: http.StatusInternalServerError, Code: api.CodeInternal, Detail: "the server failed",
		Hint: "its log has the reason under the request id"}
}

// tell returns text and hint of an error of Ferry, with the text of its cause where that is one too.
func tell(err error) (detail, hint string) {
	var e *driver.Error
	if !errors.As(err, &e) {
		return "the request cannot be done", ""
	}
	var cause *driver.Error
	if errors.As(e.Cause, &cause) {
		return e.Text + ": " + cause.Text, cmp.Or(e.Hint, cause.Hint)
	}
	return e.Text, e.Hint
}

// complete fills in what follows from the status and the request.
func complete(ctx context.Context, p *api.Problem) *api.Problem {
	done := *p
	done.Type, done.Title = "about:blank", http.StatusText(p.Status)
	done.RequestID = auth.RequestID(ctx)
	return &done
}

// transform makes problems of what huma itself says is wrong, and completes those of the routes.
func transform(c huma.Context, _ string, v any) (any, error) {
	switch v := v.(type) {
	case *api.Problem:
		return complete(c.Context(), v), nil
	case *huma.ErrorModel:
		return complete(c.Context(), ofForm(v)), nil
	}
	return v, nil
}

// formCodes are the codes of what huma finds wrong with the form of a request.
var formCodes = map[int]string{
	http.StatusBadRequest:            api.CodeInvalid,
	http.StatusRequestEntityTooLarge: api.CodeTooLarge,
	http.StatusUnsupportedMediaType:  api.CodeMediaType,
	http.StatusUnprocessableEntity:   api.CodeMalformed,
	http.StatusRequestTimeout:        api.CodeUnavailable,
}

func ofForm(e *huma.ErrorModel) *api.Problem {
	p := &api.Problem{Status: e.Status, Code: cmp.Or(formCodes[e.Status], api.CodeInvalid), Detail: e.Detail,
		Hint: "see /openapi.json, or /docs, for what this route takes"}
	for _, d := range e.Errors {
		if d != nil { // its value stays out: it may be a secret
			p.Fields = append(p.Fields, api.Field{Location: d.Location, Message: d.Message})
		}
	}
	return p
}

// write answers a request with a problem.
func (a *API) write(c huma.Context, p *api.Problem) {
	c.SetHeader("Content-Type", p.ContentType(""))
	c.SetStatus(p.Status)
	_ = json.NewEncoder(c.BodyWriter()).Encode(complete(c.Context(), p)) // whoever asked is gone
}

// writeProblem answers a request that no route took.
func writeProblem(w http.ResponseWriter, r *http.Request, p *api.Problem) {
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(complete(r.Context(), p)) // whoever asked is gone
}

// without is the error of a route that needs what the server does not have.
func without(what, hint string) error { return driver.NewError(driver.ErrUnsupported, what, hint, nil) }

func (a *API) needGuards(actor string) (*guard.Admin, error) {
	if a.o.Guards == nil {
		return nil, without("the server has no store of guards", "give it the store that the workers use: see guards in "+
			"its configuration")
	}
	return guard.NewAdmin(a.o.Guards, actor)
}
