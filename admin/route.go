package admin

import (
	"context"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/auth"
)

// place is where a route names the topic that its scope is asked for.
type place string

const (
	inPath  place = "path"  // {topic}
	inQuery place = "query" // ?topic=; without it every topic is meant
	inBody  place = "body"  // what topics of the input tells
	inEach  place = "each"  // it lists: whoever may see no topic is refused, and the others see theirs
	nowhere place = ""      // it concerns no topic, which takes a grant on every one
)

// route is a row of the table.
type route struct {
	method, path string
	id, summary  string
	scope        auth.Scope
	topic        place
	// acts says that it changes something, which is recorded.
	acts bool
	// lasts says that it streams, for as long as the client listens.
	lasts bool
	// maxBody is the most bytes of a request. Defaults to maxBody.
	maxBody int64
	// register wires the function that answers.
	register func(a *API, op huma.Operation)
}

const (
	maxBody     = 1 << 20
	requestTime = 30 * time.Second // for what does not last
)

// A row begins with how it is asked for.

func get(path, id, summary string, scope auth.Scope, topic place) route {
	return route{method: http.MethodGet, path: api.Base + path, id: id, summary: summary, scope: scope, topic: topic}
}

func post(path, id, summary string, scope auth.Scope, topic place) route {
	return route{method: http.MethodPost, path: api.Base + path, id: id, summary: summary, scope: scope, topic: topic}
}

func put(path, id, summary string, scope auth.Scope, topic place) route {
	return route{method: http.MethodPut, path: api.Base + path, id: id, summary: summary, scope: scope, topic: topic}
}

func del(path, id, summary string, scope auth.Scope, topic place) route {
	return route{method: http.MethodDelete, path: api.Base + path, id: id, summary: summary, scope: scope, topic: topic}
}

// at moves a row away from the base path.
func (r route) at(path string) route {
	r.path = path
	return r
}

func (r route) upTo(bytes int64) route {
	r.maxBody = bytes
	return r
}

// answer is what huma writes. Its type is the same for every row: huma compiles all of its handling anew for each pair
// of types.
type answer struct{ Body any }

// describe sets the schema of an O as that of the answer of op.
func describe[O any](a *API, op *huma.Operation) {
	t := reflect.TypeFor[struct{ Body O }]()
	schema := huma.SchemaFromField(a.huma.OpenAPI().Components.Schemas, t.Field(0), op.OperationID+"Response")
	op.Responses["200"] = &huma.Response{Content: map[string]*huma.MediaType{"application/json": {Schema: schema}}}
}

// topical is an input whose body names topics. None: every topic is meant.
type topical interface{ topics() []string }

// reads ends a row with a function that looks.
func reads[I, O any](r route, f func(*API, context.Context, *I) (O, error)) route {
	r.register = func(a *API, op huma.Operation) {
		describe[O](a, &op)
		huma.Register(a.huma, op, func(ctx context.Context, in *I) (*answer, error) {
			if err := a.mayBody(ctx, r, in); err != nil {
				return nil, a.problem(ctx, err)
			}
			out, err := f(a, ctx, in)
			if err != nil {
				return nil, a.problem(ctx, err)
			}
			return &answer{out}, nil
		})
	}
	return r
}

// acts ends a row with a function that changes something, and says of what in the action that is recorded.
func acts[I, O any](r route, f func(*API, context.Context, *I, *auth.Action) (O, error)) route {
	r.acts = true
	r.register = func(a *API, op huma.Operation) {
		describe[O](a, &op)
		huma.Register(a.huma, op, func(ctx context.Context, in *I) (*answer, error) {
			action := auth.Action{What: r.id}
			if err := a.mayBody(ctx, r, in); err != nil {
				return nil, a.problem(ctx, err)
			}
			out, err := f(a, ctx, in, &action)
			a.looks.forget()
			a.record(ctx, action, err)
			if err != nil {
				return nil, a.problem(ctx, err)
			}
			return &answer{out}, nil
		})
	}
	return r
}

// does is acts for what has no answer.
func does[I any](r route, f func(*API, context.Context, *I, *auth.Action) error) route {
	r.acts = true
	r.register = func(a *API, op huma.Operation) {
		op.DefaultStatus = http.StatusNoContent
		huma.Register(a.huma, op, func(ctx context.Context, in *I) (*struct{}, error) {
			action := auth.Action{What: r.id}
			if err := a.mayBody(ctx, r, in); err != nil {
				return nil, a.problem(ctx, err)
			}
			err := f(a, ctx, in, &action)
			a.looks.forget()
			a.record(ctx, action, err)
			if err != nil {
				return nil, a.problem(ctx, err)
			}
			return nil, nil
		})
	}
	return r
}

// stream is how an answer is written piece by piece.
type stream struct{ Body func(huma.Context) }

// writes ends a row with a function that writes its answer itself. What it returns before the first byte becomes a
// problem.
func writes[I any](r route, contentType string, f func(*API, context.Context, *I, *writer) error) route {
	r.lasts = true
	r.register = func(a *API, op huma.Operation) {
		op.Responses["200"] = &huma.Response{Description: "OK", Content: map[string]*huma.MediaType{contentType: {}}}
		huma.Register(a.huma, op, func(ctx context.Context, in *I) (*stream, error) {
			if err := a.mayBody(ctx, r, in); err != nil {
				return nil, a.problem(ctx, err)
			}
			return &stream{func(c huma.Context) {
				w := newWriter(c, contentType)
				if err := f(a, ctx, in, w); err != nil {
					a.breakOff(c, w, err)
					return
				}
				w.begin() // also of what is empty
			}}, nil
		})
	}
	return r
}

// record notes an action that was done, or was tried. That the note failed is logged: what was done is done.
func (a *API) record(ctx context.Context, action auth.Action, err error) {
	if a.o.Actions == nil {
		return
	}
	if err != nil {
		p := a.problem(ctx, err)
		if action.Outcome, action.Detail = auth.Failed, p.Detail; p.Code == api.CodeForbidden {
			action.Outcome = auth.Denied
		}
	}
	if err := a.o.Actions.Record(context.WithoutCancel(ctx), action); err != nil {
		a.log.ErrorContext(ctx, "admin: an action could not be recorded", "what", action.What, "topic", action.Topic, "error",
			err)
	}
}
