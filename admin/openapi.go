package admin

import (
	"bytes"
	_ "embed" // the template of the docs page
	"encoding/json"
	"html/template"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/ferrymq/ferry/admin/api"
)

// OpenAPI returns the document that describes the API: OpenAPI 3.1, as JSON.
func (a *API) OpenAPI() []byte { return slices.Clone(a.spec()) }

func problemResponse(types huma.Registry) *huma.Response {
	return &huma.Response{Description: "Problem details (RFC 9457)", Content: map[string]*huma.MediaType{
		"application/problem+json": {Schema: types.Schema(reflect.TypeFor[api.Problem](), true, "Problem")}}}
}

// tag groups a route by the first part of its path.
func tag(r route) string {
	rest := strings.TrimPrefix(strings.TrimPrefix(r.path, api.Base), "/")
	first, _, _ := strings.Cut(rest, "/")
	return first
}

// forgetUnused takes types out of the document that huma names, but every problem is a Problem.
func (a *API) forgetUnused() {
	for _, unused := range []string{"ErrorModel", "ErrorDetail"} {
		delete(a.huma.OpenAPI().Components.Schemas.Map(), unused)
	}
}

// writeSpec writes the OpenAPI document. It is made of our own types, which TestOpenAPIIsCommitted has written before
// anybody asks.
func (a *API) writeSpec() []byte {
	spec, err := json.MarshalIndent(a.huma.OpenAPI(), "", "  ")
	if err != nil {
		panic(err)
	}
	return slices.Concat(spec, []byte("\n"))
}

//go:embed docs.html
var docsPage string

// pageRoute is a route on the docs page.
type pageRoute struct {
	Method, Path, Summary string
	Scope, Topic          string
	Parameters            []pageParameter
	Body                  string
}

type pageParameter struct{ Name, In, Doc string }

// writePage writes the page for people: plain HTML that loads nothing from elsewhere.
func (a *API) writePage() []byte {
	var b bytes.Buffer
	if err := template.Must(template.New("docs").Parse(docsPage)).Execute(&b, a.pageRoutes()); err != nil {
		panic(err) // as that of writeSpec
	}
	return b.Bytes()
}

func (a *API) pageRoutes() []pageRoute {
	doc := a.huma.OpenAPI()
	var all []pageRoute
	for _, r := range table() {
		op := operationOf(doc, r)
		p := pageRoute{Method: r.method, Path: r.path, Summary: r.summary, Scope: string(r.scope), Topic: string(r.topic)}
		for _, param := range op.Parameters {
			p.Parameters = append(p.Parameters, pageParameter{param.Name, param.In, param.Description})
		}
		if op.RequestBody != nil {
			p.Body = bodyOf(op.RequestBody)
		}
		all = append(all, p)
	}
	return all
}

func operationOf(doc *huma.OpenAPI, r route) *huma.Operation {
	item := doc.Paths[r.path]
	return map[string]*huma.Operation{"GET": item.Get, "POST": item.Post, "PUT": item.Put, "DELETE": item.Delete}[r.method]
}

// bodyOf names the schema of a request body.
func bodyOf(b *huma.RequestBody) string {
	for _, m := range b.Content {
		if m.Schema != nil && m.Schema.Ref != "" {
			return m.Schema.Ref[strings.LastIndex(m.Schema.Ref, "/")+1:]
		}
	}
	return "bytes"
}
