package gateway

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/frame"
)

// route is a row of the table: how it is asked for, its name and what it is for in the document, and the function that
// answers.
type route struct {
	method, path string
	id, summary  string
	query        []parameter
	headers      []parameter
	request      []content // by content type; none for a route without a body
	answers      map[int][]content
	frames       bool // its answers are frames, errors included: it checks for itself
	serve        func(*Gateway, http.ResponseWriter, *http.Request)
}

// parameter is one of a query or a header.
type parameter struct {
	name, doc string
	of        any // a value of its type
	example   any
}

// content is a body of one content type.
type content struct {
	contentType string
	of          any // a value of its type; nil for any bytes
	example     string
}

// oneOf are values of several types.
type oneOf []any

const frameDoc = "One call of the driver seam in a binary frame, for Go programs (driver/remote); an error is a " +
	"frame, too"

// table is every route.
func table() []route {
	return []route{
		{method: "POST", path: "/v1/topics/{topic}/messages", id: "publish", summary: "Publish one message, or many",
			headers: publishHeaders, request: publishBodies, answers: publishAnswers, serve: (*Gateway).servePublish},
		{method: "POST", path: "/v1/topics/{topic}/groups/{group}/receive", id: "receive",
			summary: "Settle, and wait for messages",
			request: inJSON(receiveRequest{}, receiveExample),
			answers: map[int][]content{200: receiveAnswers, 204: nil}, serve: (*Gateway).serveReceive},
		{method: "GET", path: "/v1/topics/{topic}/groups/{group}/stream", id: "stream",
			summary: "Messages as they come, one in a line",
			query:   streamQuery, answers: streamAnswers, serve: (*Gateway).serveStream},
		{method: "POST", path: "/v1/settle", id: "settle", summary: "End deliveries",
			request: inJSON(settleRequest{}, settleExample), answers: map[int][]content{200: inJSON(settled{}, settledExample)},
			serve: (*Gateway).serveSettle},
		{method: "POST", path: "/v1/extend", id: "extend", summary: "Make leases last one full lease from now",
			request: inJSON(extendRequest{}, extendExample),
			answers: map[int][]content{200: inJSON(extended{}, extendedExample)}, serve: (*Gateway).serveExtend},
		{method: "GET", path: "/v1/results/{topic}/{group}/{id}", id: "result",
			summary: "How far a message is, and what its handler returned",
			query:   resultQuery, answers: map[int][]content{200: inJSON(status{}, statusExample)},
			serve: (*Gateway).serveResult},
		{method: "PUT", path: "/v1/push/{name}", id: "push.put",
			summary: "Make or replace a subscription that posts to a URL",
			request: inJSON(pushed{}, pushExample), answers: map[int][]content{200: inJSON(pushed{}, pushedExample)},
			serve: (*Gateway).servePutPush},
		{method: "GET", path: "/v1/push/{name}", id: "push.show", summary: "Show one, without its secret",
			answers: map[int][]content{200: inJSON(pushed{}, hiddenExample)}, serve: (*Gateway).serveGetPush},
		{method: "GET", path: "/v1/push", id: "push.list", summary: "List them by name",
			answers: map[int][]content{200: inJSON(pushList{}, pushListExample)}, serve: (*Gateway).serveListPush},
		{method: "DELETE", path: "/v1/push/{name}", id: "push.delete", summary: "End one; its group stays",
			answers: map[int][]content{200: inJSON(pushed{}, hiddenExample)}, serve: (*Gateway).serveDeletePush},
		{method: "POST", path: "/v1/driver/{call}", id: "driver", summary: frameDoc,
			request: []content{{contentType: frame.ContentType}},
			answers: map[int][]content{200: {{contentType: frame.ContentType}}}, frames: true, serve: (*Gateway).serveFrame},
	}
}

func inJSON(of any, example string) []content { return []content{{jsonType, of, example}} }

// wire makes the routes of the table.
func (g *Gateway) wire() {
	for _, row := range table() {
		g.mux.HandleFunc(row.method+" "+row.path, func(w http.ResponseWriter, r *http.Request) {
			if err := row.check(r); err != nil {
				refuse(w, r, err)
				return
			}
			row.serve(g, w, r)
		})
	}
	g.mux.HandleFunc("GET "+SpecPath, serveSpec)
	g.mux.HandleFunc("/", serveNothing)
}

// check refuses who does not say who asks, bodies that would be stored as they came, encoded, names that no broker has,
// and parameters that are not known: what is misspelt would be ignored.
func (r route) check(req *http.Request) error {
	switch {
	case r.frames:
		return nil
	case auth.From(req.Context()) == nil:
		return driver.NewError(driver.ErrRefused, "the request says not who asks", "send a token", nil)
	}
	if encoding := req.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return invalid(fmt.Sprintf("the body is encoded as %.40q", encoding),
			"send it plain; the server compresses what it stores if it is set up so", nil)
	}
	for _, what := range []string{"topic", "group"} {
		if name := req.PathValue(what); name != "" {
			if err := driver.CheckName(what, name); err != nil {
				return err
			}
		}
	}
	for name := range req.URL.Query() {
		if !slices.ContainsFunc(r.query, func(p parameter) bool { return p.name == name }) {
			return invalid(fmt.Sprintf("there is no parameter %.60q", name), "see "+SpecPath+" for what this route takes", nil)
		}
	}
	return nil
}

// serveNothing answers what there is no route for.
func serveNothing(w http.ResponseWriter, r *http.Request) {
	refuse(w, r, driver.NewError(driver.ErrNotFound, "the gateway has no such route", "see "+SpecPath+" for what there is",
		nil))
}
