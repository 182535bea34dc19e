package admin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/ferrymq/ferry/admin/api"
)

// document is what the negative tests need of the OpenAPI document.
type document struct {
	Paths      map[string]map[string]documented
	Components struct{ Schemas map[string]schema }
}

type documented struct {
	Parameters []struct {
		Name, In string
		Schema   schema
	}
	RequestBody struct {
		Content map[string]struct{ Schema schema }
	}
}

type schema struct {
	Ref        string `json:"$ref"`
	Type       any    // a name, or a list of them
	Enum       []string
	MaxLength  int
	Maximum    float64
	Properties map[string]schema
	Items      *schema
}

func (d *document) resolve(s schema) schema {
	if s.Ref == "" {
		return s
	}
	return d.Components.Schemas[s.Ref[strings.LastIndex(s.Ref, "/")+1:]]
}

func (s schema) is(name string) bool { return strings.Contains(fmt.Sprint(s.Type), name) }

// wrong returns values of JSON that a schema forbids.
func (s schema) wrong() []any {
	var out []any
	if s.Type == nil {
		return nil // anything goes
	}
	for name, value := range map[string]any{"string": "text", "integer": 7, "boolean": true, "array": []any{[]any{}},
		"object": map[string]any{"nope": 1}} {
		if !s.is(name) && !(name == "integer" && s.is("number")) {
			out = append(out, value)
		}
	}
	if s.Enum != nil {
		out = append(out, "nope")
	}
	if s.MaxLength > 0 {
		out = append(out, strings.Repeat("x", s.MaxLength+1))
	}
	return out
}

// TestWrongInput sends each route what its own document forbids: every answer is a problem, none a failure of the
// server.
func TestWrongInput(t *testing.T) {
	virtual(t, Options{}, func(r *rig) {
		var d document
		if err := json.Unmarshal(r.api.OpenAPI(), &d); err != nil {
			t.Fatal(err)
		}
		sent := 0
		for _, route := range table() {
			op := d.Paths[route.path][strings.ToLower(route.method)]
			sent += r.wrongQuery(route, op) + r.wrongBody(route, op, &d)
		}
		if sent < 800 {
			t.Errorf("only %d wrong requests were made of the document", sent)
		}
	})
}

// wrongQuery sends parameters that are unknown, of another type, not among those allowed, too large and too long.
func (r *rig) wrongQuery(route route, op documented) (sent int) {
	wrong := []string{"nope=1"}
	for _, p := range op.Parameters {
		if p.In != "query" {
			continue
		}
		switch {
		case p.Schema.is("integer"):
			wrong = append(wrong, p.Name+"=x", p.Name+"=-1", p.Name+"=1e9", fmt.Sprintf("%s=%.0f", p.Name, p.Schema.Maximum+1))
		case p.Schema.is("boolean"):
			wrong = append(wrong, p.Name+"=maybe")
		case p.Schema.Enum != nil:
			wrong = append(wrong, p.Name+"=nope")
		}
		if p.Schema.MaxLength > 0 {
			wrong = append(wrong, p.Name+"="+strings.Repeat("x", p.Schema.MaxLength+1))
		}
	}
	for _, query := range wrong {
		r.expectProblem(route, r.do(route.method, filled(route)+"?"+query, "", nil), query)
	}
	return len(wrong)
}

// wrongBody sends bodies that are no JSON, no UTF-8, no object, of another content type, too large, and with fields
// that are unknown, of another type or too long.
func (r *rig) wrongBody(route route, op documented, d *document) (sent int) {
	content, ok := op.RequestBody.Content["application/json"]
	if !ok {
		return 0
	}
	bodies := []string{"{", "\xff", `"text"`, "[]", "7", `{"nope":1}`, strings.Repeat("[", 100_000), `{"topic":"\ud800"`}
	for name, p := range d.resolve(content.Schema).Properties {
		for _, value := range d.resolve(p).wrong() {
			data, err := json.Marshal(map[string]any{name: value})
			if err != nil {
				r.Fatal(err)
			}
			bodies = append(bodies, string(data))
		}
	}
	for _, body := range bodies {
		r.expectProblem(route, r.do(route.method, filled(route), "application/json", strings.NewReader(body)), body)
	}
	r.expectProblem(route, r.do(route.method, filled(route), "text/plain", strings.NewReader("{}")), "text/plain")
	if route.maxBody == 0 {
		large := r.do(route.method, filled(route), "application/json", bytes.NewReader(make([]byte, maxBody+1)))
		if r.expectProblem(route, large, "large"); large.Code != http.StatusRequestEntityTooLarge {
			r.Errorf("%s %s answers %d to a large body", route.method, route.path, large.Code)
		}
	}
	return len(bodies) + 2
}

func (r *rig) expectProblem(route route, w *httptest.ResponseRecorder, sent string) {
	r.Helper()
	var p api.Problem
	err := json.Unmarshal(w.Body.Bytes(), &p)
	if w.Code < 400 || w.Code >= 500 || err != nil || w.Header().Get("Content-Type") != "application/problem+json" ||
		p.Status != w.Code || p.Code == "" || p.RequestID == "" {
		r.Errorf("%s %s with %.60q: %d %.200s", route.method, route.path, sent, w.Code, w.Body)
	}
}

// TestWrongPaths: names that no broker has are refused, whatever they are made of.
func TestWrongPaths(t *testing.T) {
	virtual(t, Options{}, func(r *rig) {
		for _, name := range []string{"a b", "\xff", "..", "%00", "'\"<>", strings.Repeat("x", 129), "-a", "a/b"} {
			for _, route := range table() {
				if route.lasts || !strings.Contains(route.path, "{topic}") {
					continue
				}
				path := strings.ReplaceAll(filled(route), topic, url.PathEscape(name))
				w := r.do(route.method, path, "application/json", strings.NewReader("{}"))
				if name == ".." && w.Code == http.StatusTemporaryRedirect {
					continue // what is left without it is another route, which asks who it is itself
				}
				if w.Code < 400 || w.Code >= 500 && w.Code != http.StatusNotImplemented {
					r.Errorf("%s %s with %q: %d %.200s", route.method, route.path, name, w.Code, w.Body)
				}
			}
		}
	})
}

// TestWrongNames: whatever stands where a path has a name, the answer is one of the API, and never that the server
// failed.
func TestWrongNames(t *testing.T) {
	virtual(t, Options{}, func(r *rig) {
		asked := 0
		for _, name := range []string{"a b", "\xff", "%00", "'\"<>", strings.Repeat("x", 1000), "-a", "a/b", "世界", "*", "{x}",
			"ferry."} {
			for _, route := range table() {
				for _, p := range parameter.FindAllString(route.path, -1) {
					if route.lasts || p == "{topic}" { // see TestWrongPaths
						continue
					}
					asked++
					one := route
					one.path = strings.Replace(route.path, p, url.PathEscape(name), 1)
					w := r.do(route.method, filled(one), "application/json", strings.NewReader("{}"))
					problem := w.Code >= 400 && w.Header().Get("Content-Type") == "application/problem+json"
					if !problem && w.Code >= 300 || w.Code >= 500 && w.Code != http.StatusNotImplemented {
						r.Errorf("%s %s with %.40q: %d %.200s", route.method, route.path, name, w.Code, w.Body)
					}
				}
			}
		}
		if asked < 500 {
			t.Errorf("only %d names were asked for", asked)
		}
	})
}
