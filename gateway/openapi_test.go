package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/internal/frame"
)

var update = flag.Bool("update", false, "write openapi.json from the table")

// document is what the tests need of the OpenAPI document.
type document struct {
	OpenAPI    string
	Paths      map[string]map[string]documented
	Components struct{ Schemas map[string]schema }
}

type documented struct {
	OperationID string
	Parameters  []struct {
		Name, In string
		Schema   schema
		Example  any
	}
	RequestBody struct{ Content map[string]medium }
	Responses   map[string]struct{ Content map[string]medium }
}

type medium struct {
	Schema  schema
	Example json.RawMessage
}

type schema struct {
	Ref        string `json:"$ref"`
	Type       any    // a name, or a list of them
	Enum       []string
	Properties map[string]schema
	Items      *schema
}

func (s schema) is(name string) bool { return strings.Contains(fmt.Sprint(s.Type), name) }

func (d *document) resolve(s schema) schema {
	if s.Ref == "" {
		return s
	}
	return d.Components.Schemas[s.Ref[strings.LastIndex(s.Ref, "/")+1:]]
}

// rig asks a gateway in virtual time, as somebody who may do everything.
type rig struct {
	*testing.T
	g   *Gateway
	doc document
}

func virtual(t *testing.T, f func(r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		b, err := memory.Open(t.Context(), memory.Options{Broker: ferry.Options{Logger: slog.New(slog.DiscardHandler)}})
		if err != nil {
			t.Fatal(err)
		}
		g, err := New(b, Options{})
		if err != nil {
			t.Fatal(err)
		}
		r := &rig{T: t, g: g}
		if err := json.Unmarshal(OpenAPI(), &r.doc); err != nil {
			t.Fatal(err)
		}
		f(r)
		_ = g.Close(context.Background())
		_ = b.Close(context.Background())
	})
}

// do makes a request. A stream ends after a minute.
func (r *rig) do(method, target, contentType, body string, headers ...parameter) *httptest.ResponseRecorder {
	r.Helper()
	req := httptest.NewRequest(method, target, strings.NewReader(body))
	req.Header.Set("Content-Type", contentType)
	for _, h := range headers {
		if h.example != nil {
			req.Header.Set(h.name, fmt.Sprint(h.example))
		}
	}
	ctx, cancel := context.WithTimeout(auth.With(r.Context(), &auth.Identity{Kind: auth.KindToken, Name: "test",
		Grants: []auth.Grant{{Role: auth.Administrator}}}), time.Minute)
	defer cancel()
	w := httptest.NewRecorder()
	r.g.ServeHTTP(w, req.WithContext(ctx))
	return w
}

// filled is the path of a route with the examples of its parameters.
func (r route) filled() string {
	return pathParameter.ReplaceAllStringFunc(r.path, func(p string) string { return pathExamples[strings.Trim(p, "{}")] })
}

func (r *rig) of(row route) documented { return r.doc.Paths[row.path][strings.ToLower(row.method)] }

func TestOpenAPIIsCommitted(t *testing.T) {
	if *update {
		if err := os.WriteFile("openapi.json", OpenAPI(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	committed, err := os.ReadFile("openapi.json")
	if err != nil || !bytes.Equal(committed, OpenAPI()) {
		t.Errorf("openapi.json is not what the table says (%v): run 'go test ./gateway -run TestOpenAPI -update'", err)
	}
}

// TestDocumentEqualsRouter: each route of the document is in the table and is answered, and each row is in the
// document.
func TestDocumentEqualsRouter(t *testing.T) {
	virtual(t, func(r *rig) {
		if r.doc.OpenAPI != "3.1.0" {
			t.Errorf("version %q", r.doc.OpenAPI)
		}
		found := 0
		for path, methods := range r.doc.Paths {
			for method, op := range methods {
				found++
				i := slices.IndexFunc(table(), func(row route) bool {
					return row.path == path && strings.EqualFold(row.method, method) && row.id == op.OperationID
				})
				if i < 0 {
					t.Errorf("%s %s is in the document and not in the table", method, path)
					continue
				}
				_, pattern := r.g.mux.Handler(httptest.NewRequest(strings.ToUpper(method), table()[i].filled(), nil))
				if pattern != strings.ToUpper(method)+" "+path {
					t.Errorf("%s %s is answered by %q", method, path, pattern)
				}
			}
		}
		if found != len(table()) {
			t.Errorf("the document has %d routes, the table %d", found, len(table()))
		}
	})
}

// TestDocumentIsForEverybody: it is answered as it is committed, to who sends no token.
func TestDocumentIsForEverybody(t *testing.T) {
	virtual(t, func(r *rig) {
		w := httptest.NewRecorder()
		r.g.ServeHTTP(w, httptest.NewRequest(http.MethodGet, SpecPath, nil))
		if w.Code != http.StatusOK || !bytes.Equal(w.Body.Bytes(), OpenAPI()) {
			t.Errorf("the document answers %d", w.Code)
		}
		for _, row := range table() {
			w := httptest.NewRecorder()
			r.g.ServeHTTP(w, httptest.NewRequest(row.method, row.filled(), nil))
			if w.Code != http.StatusForbidden {
				t.Errorf("%s %s answers nobody with %d", row.method, row.path, w.Code)
			}
		}
	})
}

// TestExamples sends each example of a request, in the order of the table: it is answered as the document says.
func TestExamples(t *testing.T) {
	virtual(t, func(r *rig) {
		for _, row := range table() {
			if row.frames {
				continue // they have tests of their own
			}
			requests := map[string]medium{"": {}}
			if row.request != nil {
				requests = r.of(row).RequestBody.Content
			}
			for _, contentType := range slices.Sorted(maps.Keys(requests)) {
				if contentType == frame.ContentType {
					continue
				}
				w := r.do(row.method, row.filled()+row.exampleQuery(), contentType,
					textOf(contentType, requests[contentType].Example), row.headers...)
				if _, documented := row.answers[w.Code]; !documented {
					t.Errorf("%s %s of type %q answers %d %s", row.method, row.path, contentType, w.Code, w.Body)
				}
			}
		}
	})
}

func (r route) exampleQuery() string {
	q := url.Values{}
	for _, p := range r.query {
		q.Set(p.name, fmt.Sprint(p.example))
	}
	return "?" + q.Encode()
}

// textOf is an example as it is sent: one that is no JSON is a text in the document.
func textOf(contentType string, example json.RawMessage) string {
	var text string
	if !isJSON(contentType) && json.Unmarshal(example, &text) == nil {
		return text
	}
	return string(example)
}

// TestAnswersOfExamples: each example of an answer has the fields of its type, and no other.
func TestAnswersOfExamples(t *testing.T) {
	for _, row := range table() {
		for status, answers := range row.answers {
			for _, c := range answers {
				if c.of == nil {
					continue // any bytes
				}
				of := c.of
				if several, ok := of.(oneOf); ok {
					of = several[0]
				}
				example := strings.TrimPrefix(c.example, "data: ")
				if err := strict([]byte(example), reflect.New(reflect.TypeOf(of)).Interface(), "the example"); err != nil {
					t.Errorf("%s %s, answer %d %s: %v", row.method, row.path, status, c.contentType, err)
				}
			}
		}
	}
	if err := strict([]byte(problemExample), &problem{}, "the example"); err != nil {
		t.Error(err)
	}
}

// TestWrongInput sends each route what its own document forbids: every answer is a problem, none a failure of the
// server.
func TestWrongInput(t *testing.T) {
	virtual(t, func(r *rig) {
		sent := 0
		for _, row := range table() {
			op := r.of(row)
			for _, query := range wrongQueries(op) {
				r.expectProblem(row, r.do(row.method, row.filled()+"?"+query, "", ""), query)
				sent++
			}
			for contentType, m := range op.RequestBody.Content {
				for _, body := range r.wrongBodies(contentType, m) {
					r.expectProblem(row, r.do(row.method, row.filled(), contentType, body), body)
					sent++
				}
			}
		}
		if sent < 200 {
			t.Errorf("only %d wrong requests were made of the document", sent)
		}
	})
}

// wrongQueries are parameters that are unknown, of another type or without sense.
func wrongQueries(op documented) []string {
	wrong := []string{"nope=1"}
	for _, p := range op.Parameters {
		if p.In == "query" {
			wrong = append(wrong, p.Name+"=x", p.Name+"=-1", p.Name+"=1e9", p.Name+"="+strings.Repeat("9", 30), p.Name+"=%00",
				p.Name+"=-1s")
		}
	}
	return wrong
}

// wrongBodies are no JSON, no UTF-8, of another kind, and with fields that are unknown or of another type, also one
// level below.
func (r *rig) wrongBodies(contentType string, m medium) []string {
	s := r.doc.resolve(m.Schema)
	wrap := func(v any) string {
		data, err := json.Marshal(v)
		if err != nil {
			r.Fatal(err)
		}
		if contentType == batchType {
			return "[" + string(data) + "]"
		}
		return string(data)
	}
	if s.Items != nil {
		s = r.doc.resolve(*s.Items)
	}
	if s.Properties == nil {
		return nil // any bytes
	}
	bodies := []string{"{", "\xff", `"text"`, "7", strings.Repeat("[", 100_000), `{"a":"` + "\xff" + `"}`,
		wrap(map[string]any{"nope": 1}), wrap([]int{1})}
	for name, p := range s.Properties {
		for _, v := range r.doc.resolve(p).wrong() {
			bodies = append(bodies, wrap(map[string]any{name: v}))
		}
		if p.Items == nil {
			continue
		}
		for below, q := range r.doc.resolve(*p.Items).Properties {
			for _, v := range r.doc.resolve(q).wrong() {
				bodies = append(bodies, wrap(map[string]any{name: []any{map[string]any{below: v}}}))
			}
		}
	}
	return bodies
}

// wrong returns values of JSON that a schema forbids. A number stands for a duration in nanoseconds, too.
func (s schema) wrong() []any {
	if s.Type == nil {
		return nil // anything goes
	}
	var out []any
	for name, value := range map[string]any{"string": "text", "boolean": true, "array": []any{[]any{}},
		"object": map[string]any{"nope": 1}} {
		if !s.is(name) {
			out = append(out, value)
		}
	}
	return out
}

func (r *rig) expectProblem(row route, w *httptest.ResponseRecorder, sent string) {
	r.Helper()
	if row.frames && w.Header().Get("Content-Type") == frame.ContentType {
		return // an error in a frame
	}
	var p problem
	err := json.Unmarshal(w.Body.Bytes(), &p)
	if w.Code < 400 || w.Code >= 500 || err != nil || w.Header().Get("Content-Type") != problemType ||
		p.Status != w.Code || p.Code == "internal" || p.Hint == "" {
		r.Errorf("%s %s with %.60q: %d %.300s", row.method, row.path, sent, w.Code, w.Body)
	}
}

// TestWrongPaths: names that no broker has are refused, whatever they are made of.
func TestWrongPaths(t *testing.T) {
	virtual(t, func(r *rig) {
		for _, name := range []string{"a b", "\xff", "%00", "'\"<>", strings.Repeat("x", 300), "-a", "a/b"} {
			for _, row := range table() {
				for parameter := range pathExamples {
					if !strings.Contains(row.path, "{"+parameter+"}") || parameter == "id" {
						continue // an id may be anything: there is no such message
					}
					path := strings.Replace(row.path, "{"+parameter+"}", url.PathEscape(name), 1)
					path = route{path: path}.filled()
					body := ""
					if row.request != nil {
						body = row.request[0].example
					}
					r.expectProblem(row, r.do(row.method, path, "", body), parameter+" "+strconv.Quote(name))
				}
			}
		}
	})
}
