package admin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"runtime/debug"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/internal/uuid7"
)

// RequestIDHeader carries the id under which a request stands in the log.
const RequestIDHeader = "X-Request-Id"

// Paths that answer to everybody: they say what the API is, and nothing of the broker.
const (
	SpecPath = "/openapi.json"
	DocsPath = "/docs"
)

// wire makes the routes of the table, and those of the document of them.
func (a *API) wire() {
	a.mux = http.NewServeMux()
	a.huma = humago.New(a.mux, config(a.o.Version))
	for _, r := range table() {
		r.register(a, a.operation(r))
	}
	a.forgetUnused()
	a.spec = sync.OnceValue(a.writeSpec)
	a.mux.HandleFunc("GET "+SpecPath, constant("application/json", a.spec))
	a.mux.HandleFunc("GET "+DocsPath, constant("text/html; charset=utf-8", sync.OnceValue(a.writePage)))
}

// constant answers with what is made when it is asked for first: most of the time that an API needs to start would go
// there.
func constant(contentType string, body func() []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = w.Write(body()) // whoever asked is gone
	}
}

func config(version string) huma.Config {
	c := huma.DefaultConfig("Ferry", "1")
	if version != "" {
		c.Info.Description = "Admin API of Ferry " + version
	}
	c.OpenAPIPath, c.DocsPath, c.SchemasPath = "", "", "" // served by wire: the pages of huma load from elsewhere
	c.CreateHooks = nil
	c.Transformers = []huma.Transformer{transform}
	c.RejectUnknownQueryParameters = true
	strict := huma.Format{Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: unmarshal}
	c.Formats = map[string]huma.Format{"application/json": strict, "json": strict}
	types := c.Components.Schemas
	types.RegisterTypeAlias(reflect.TypeFor[api.Duration](), reflect.TypeFor[string]())
	types.RegisterTypeAlias(reflect.TypeFor[api.Time](), reflect.TypeFor[time.Time]())
	return c
}

// unmarshal reads JSON that is UTF-8: what is not would otherwise be changed silently.
func unmarshal(data []byte, v any) error {
	if !utf8.Valid(data) {
		return errors.New("the body is not UTF-8")
	}
	return json.Unmarshal(data, v)
}

// operation is a row of the table as OpenAPI knows it.
func (a *API) operation(r route) huma.Operation {
	op := huma.Operation{OperationID: r.id, Method: r.method, Path: r.path, Summary: r.summary, Tags: []string{tag(r)},
		MaxBodyBytes: maxBody, BodyReadTimeout: requestTime, Middlewares: huma.Middlewares{a.authorize(r)},
		Responses:  map[string]*huma.Response{"default": problemResponse(a.huma.OpenAPI().Components.Schemas)},
		Extensions: map[string]any{"x-scope": string(r.scope), "x-topic": string(r.topic)}}
	if r.maxBody > 0 {
		op.MaxBodyBytes = r.maxBody
	}
	if !r.lasts {
		op.Middlewares = append(op.Middlewares, bounded)
	}
	return op
}

// bounded ends a request that takes too long.
func bounded(c huma.Context, next func(huma.Context)) {
	ctx, cancel := context.WithTimeout(c.Context(), requestTime)
	defer cancel()
	next(huma.WithContext(c, ctx))
}

// ServeHTTP answers a request. Whoever calls it has put an auth.Identity into its context; without one nothing but the
// document of the API answers.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := auth.RequestID(r.Context())
	if id == "" {
		id = uuid7.New(time.Now())
		r = r.WithContext(auth.WithRequestID(r.Context(), id))
	}
	w.Header().Set(RequestIDHeader, id)
	w.Header().Set("Cache-Control", "no-store")
	defer a.recover(w, r)
	h, pattern := a.mux.Handler(r)
	if pattern == "" {
		a.notFound(h, w, r)
		return
	}
	a.mux.ServeHTTP(w, r)
}

// notFound answers what no route takes. The mux knows whether the path answers to other methods.
func (a *API) notFound(h http.Handler, w http.ResponseWriter, r *http.Request) {
	var answer headOnly
	h.ServeHTTP(&answer, r)
	if answer.status == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", answer.Header().Get("Allow"))
		writeProblem(w, r, &api.Problem{Status: answer.status, Code: api.CodeMethod,
			Detail: "the path does not answer to " + r.Method,
			Hint:   "it answers to " + answer.Header().Get("Allow")})
		return
	}
	writeProblem(w, r, &api.Problem{Status: http.StatusNotFound, Code: api.CodeNotFound, Detail: "there is no such path",
		Hint: "see " + SpecPath + ", or " + DocsPath + ", for the paths there are"})
}

// headOnly keeps status and headers of an answer, and forgets its body.
type headOnly struct {
	header http.Header
	status int
}

func (h *headOnly) Header() http.Header {
	if h.header == nil {
		h.header = http.Header{}
	}
	return h.header
}

func (h *headOnly) Write(p []byte) (int, error) { return len(p), nil }
func (h *headOnly) WriteHeader(status int)      { h.status = status }

// recover turns a panic into a problem. What panicked is in the log, and nowhere else.
func (a *API) recover(w http.ResponseWriter, r *http.Request) {
	switch v := recover(); {
	case v == nil:
	case v == http.ErrAbortHandler: //nolint:errorlint // a panic value, compared as net/http does
		panic(v)
	case r.Context().Err() != nil: // huma panics when the client is gone
	default:
		a.log.ErrorContext(r.Context(), "admin: a request panicked", "request", auth.RequestID(r.Context()), "panic", v,
			"stack", string(debug.Stack()))
		writeProblem(w, r, internal())
	}
}
