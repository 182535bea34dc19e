package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/ferrymq/ferry/internal/jsontime"
)

// SpecPath is where a gateway answers with its OpenAPI document, to everybody: it says nothing of the broker.
const SpecPath = "/v1/openapi.json"

// OpenAPI returns the document that describes the routes of a gateway: OpenAPI 3.1, as JSON.
func OpenAPI() []byte { return slices.Clone(spec()) }

func serveSpec(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", jsonType)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(spec()) // whoever asked is gone
}

// spec is made of the table when it is asked for first. Huma only describes: routes answer without it.
var spec = sync.OnceValue(func() []byte {
	types := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	types.RegisterTypeAlias(reflect.TypeFor[jsontime.Duration](), reflect.TypeFor[string]())
	types.RegisterTypeAlias(reflect.TypeFor[jsontime.Time](), reflect.TypeFor[time.Time]())
	doc := &huma.OpenAPI{
		OpenAPI: "3.1.0", Info: &huma.Info{Title: "Ferry", Version: "1",
			Description: "A broker over HTTP: publish, receive, settle, extend, stream and push"},
		Paths: map[string]*huma.PathItem{}, Security: []map[string][]string{{"token": {}}},
		Components: &huma.Components{Schemas: types,
			SecuritySchemes: map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer"}}},
	}
	for _, r := range table() {
		r.describe(doc, types)
	}
	data, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("the document of the gateway: %v", err)) // a defect of the table, which the tests find
	}
	return append(data, '\n')
})

// describe puts a route into the document.
func (r route) describe(doc *huma.OpenAPI, types huma.Registry) {
	op := &huma.Operation{OperationID: r.id, Method: r.method, Path: r.path, Summary: r.summary,
		Responses: map[string]*huma.Response{
			"default": {Description: "Problem details (RFC 9457)", Content: described(types,
				[]content{{problemType, problem{}, problemExample}})}}}
	for _, name := range pathParameter.FindAllStringSubmatch(r.path, -1) {
		op.Parameters = append(op.Parameters, &huma.Param{Name: name[1], In: "path", Required: true,
			Schema: &huma.Schema{Type: "string"}, Example: pathExamples[name[1]]})
	}
	op.Parameters = append(op.Parameters, parametersOf(types, "query", r.query)...)
	op.Parameters = append(op.Parameters, parametersOf(types, "header", r.headers)...)
	if r.request != nil {
		op.RequestBody = &huma.RequestBody{Content: described(types, r.request)}
	}
	for status, answers := range r.answers {
		op.Responses[strconv.Itoa(status)] = &huma.Response{Description: http.StatusText(status),
			Content: described(types, answers)}
	}
	doc.AddOperation(op)
}

var pathParameter = regexp.MustCompile(`\{(\w+)\}`)

func parametersOf(types huma.Registry, in string, all []parameter) []*huma.Param {
	var out []*huma.Param
	for _, p := range all {
		out = append(out, &huma.Param{Name: p.name, In: in, Description: p.doc,
			Schema: types.Schema(reflect.TypeOf(p.of), true, p.name), Example: p.example})
	}
	return out
}

// schemaOf is the schema of a value's type.
func schemaOf(types huma.Registry, of any) *huma.Schema {
	several, ok := of.(oneOf)
	if !ok {
		return types.Schema(reflect.TypeOf(of), true, "")
	}
	s := &huma.Schema{}
	for _, one := range several {
		s.OneOf = append(s.OneOf, schemaOf(types, one))
	}
	return s
}

// described are contents as OpenAPI knows them. An example of JSON is JSON in the document, any other a text.
func described(types huma.Registry, all []content) map[string]*huma.MediaType {
	out := map[string]*huma.MediaType{}
	for _, c := range all {
		m := &huma.MediaType{}
		if c.of != nil {
			m.Schema = schemaOf(types, c.of)
		}
		switch {
		case c.example == "":
		case isJSON(c.contentType):
			m.Example = json.RawMessage(c.example)
		default:
			m.Example = c.example
		}
		out[c.contentType] = m
	}
	return out
}
