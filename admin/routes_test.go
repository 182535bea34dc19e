package admin

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/auth"
)

var update = flag.Bool("update", false, "write openapi.json from the table")

var parameter = regexp.MustCompile(`\{(\w+)\}`)

// filled is the path of a route with something for its parameters; the topic is the one of the tests.
func filled(r route) string {
	return parameter.ReplaceAllStringFunc(r.path, func(p string) string {
		switch p {
		case "{topic}":
			return topic
		case "{group}":
			return "default"
		}
		return "none"
	})
}

// TestEveryRouteAsEveryRole asks each route as nobody, as each role on every topic, on this topic and on another one,
// and as tokens with each single scope. Only those who hold the scope of the route where it is asked for may come
// through.
func TestEveryRouteAsEveryRole(t *testing.T) {
	virtual(t, Options{}, func(r *rig) {
		r.who = nil
		for _, route := range table() {
			r.expectDoor(route, false)
		}
		for _, role := range auth.Roles() {
			for name, grant := range map[string]auth.Grant{"all": {Role: role}, "its": {Role: role, Topics: []string{"ord*"}},
				"other": {Role: role, Topics: []string{"mails"}}} {
				for _, route := range table() {
					r.as(grant).expectDoor(route, role.Holds(route.scope) && reaches(route, name))
				}
			}
		}
		for _, scope := range auth.Scopes() {
			token := *r
			token.who = &auth.Identity{Kind: auth.KindToken, Grants: []auth.Grant{{Role: auth.Administrator}},
				Scopes: []auth.Scope{scope}}
			for _, route := range table() {
				token.expectDoor(route, route.scope == scope)
			}
		}
	})
}

// reaches reports whether a grant on all topics, on the topic of the path or on another one is enough for a route.
// Without ?topic= and without a body every topic is meant; a body that is missing is found before its topic is asked
// for.
func reaches(r route, grant string) bool {
	switch r.topic {
	case inPath:
		return grant != "other"
	case inEach, inBody:
		return true
	}
	return grant == "all"
}

func (r *rig) expectDoor(route route, open bool) {
	r.Helper()
	w := r.do(route.method, filled(route), "", nil)
	wanted := http.StatusForbidden
	if r.who == nil {
		wanted = http.StatusUnauthorized
	}
	if shut := w.Code == wanted; shut == open {
		r.Errorf("%v asks %s %s: %d %s; should come through: %v", r.who, route.method, route.path, w.Code, w.Body, open)
	}
	if open && w.Code >= 500 && w.Code != http.StatusNotImplemented {
		r.Errorf("%s %s fails: %d %s", route.method, route.path, w.Code, w.Body)
	}
}

// TestBodiesNameTopics: what a body names is asked for like what a path names.
func TestBodiesNameTopics(t *testing.T) {
	virtual(t, Options{}, func(r *rig) {
		bob := r.as(auth.Grant{Role: auth.Operator, Topics: []string{topic}})
		for _, route := range table() {
			if route.topic != inBody {
				continue
			}
			for _, body := range []any{map[string]any{"topic": "mails"}, map[string]any{}} {
				if strings.HasPrefix(route.id, "schedule.") {
					body = map[string]any{"topic": "mails", "spec": "@hourly", "message": map[string]any{}}
				}
				bob.refused(http.StatusForbidden, route.method, filled(route), body)
			}
		}
		bob.refused(http.StatusForbidden, "POST", api.Base+"/dead/replay",
			api.ReplayMany{SelectLetters: api.SelectLetters{Topic: topic}, To: "mails"})
	})
}

func TestOpenAPIIsCommitted(t *testing.T) {
	virtual(t, Options{}, func(r *rig) {
		if *update {
			if err := os.WriteFile("openapi.json", r.api.OpenAPI(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		committed, err := os.ReadFile("openapi.json")
		if err != nil || string(committed) != string(r.api.OpenAPI()) {
			t.Errorf("openapi.json is not what the table says (%v): run 'go test ./admin -run TestOpenAPI -update'", err)
		}
	})
}

// TestDocumentEqualsRouter: each route of the document is in the table and answers, and each row is in the document.
func TestDocumentEqualsRouter(t *testing.T) {
	virtual(t, Options{}, func(r *rig) {
		var doc struct {
			OpenAPI string
			Paths   map[string]map[string]struct {
				OperationID string                     `json:"operationId"`
				Responses   map[string]json.RawMessage `json:"responses"`
			}
		}
		if err := json.Unmarshal(r.api.OpenAPI(), &doc); err != nil || doc.OpenAPI != "3.1.0" {
			t.Fatalf("%v, version %q", err, doc.OpenAPI)
		}
		found := 0
		for path, methods := range doc.Paths {
			for method, op := range methods {
				found++
				if !slices.ContainsFunc(table(), func(r route) bool {
					return r.path == path && strings.EqualFold(r.method, method) && r.id == op.OperationID
				}) {
					t.Errorf("%s %s is in the document and not in the table", method, path)
				}
				if op.Responses["default"] == nil {
					t.Errorf("%s %s tells of no problems", method, path)
				}
			}
		}
		if found != len(table()) {
			t.Errorf("the document has %d routes, the table %d", found, len(table()))
		}
	})
}

// TestDocumentsAreForEverybody: they say what the API is, and load nothing from elsewhere.
func TestDocumentsAreForEverybody(t *testing.T) {
	virtual(t, Options{}, func(r *rig) {
		r.who = nil
		if w := r.do("GET", SpecPath, "", nil); w.Code != http.StatusOK || w.Body.String() != string(r.api.OpenAPI()) {
			t.Errorf("the document answers %d", w.Code)
		}
		w := r.do("GET", DocsPath, "", nil)
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), api.Base+"/topics/{topic}/messages") {
			t.Errorf("the page answers %d: %.200s", w.Code, w.Body)
		}
		if found := regexp.MustCompile(`(?i)<script|<link|<img|https?:`).FindString(w.Body.String()); found != "" {
			t.Errorf("the page has %q", found)
		}
	})
}

func TestWhatIsNoRoute(t *testing.T) {
	virtual(t, Options{}, func(r *rig) {
		r.refused(http.StatusNotFound, "GET", api.Base+"/nothing", nil)
		r.refused(http.StatusMethodNotAllowed, "DELETE", api.Base+"/health", nil)
		if w := r.do("DELETE", api.Base+"/health", "", nil); !strings.Contains(w.Header().Get("Allow"), "GET") {
			t.Errorf("it answers to %q", w.Header().Get("Allow"))
		}
	})
}

// TestLooksChangeNothing: every route that only looks leaves the broker as it was, and records no action.
func TestLooksChangeNothing(t *testing.T) {
	virtual(t, Options{}, func(r *rig) {
		r.kill(2, "timeout")
		r.publish(3)
		state := func() string {
			stats, err := r.broker.Driver().Stats(r.Context(), topic)
			topics, err2 := r.broker.Driver().Topics(r.Context())
			actions, err3 := r.api.o.Actions.List(r.Context(), auth.ActionQuery{Limit: 100})
			if err := errors.Join(err, err2, err3); err != nil {
				t.Fatal(err)
			}
			for i := range stats.Groups {
				stats.Groups[i].Oldest = 0 // time passes
			}
			return fmt.Sprintf("%+v %+v %+v", stats, topics, actions)
		}
		before := state()
		for _, route := range table() {
			if route.acts {
				continue
			}
			if route.method != http.MethodGet {
				t.Errorf("%s %s looks, and is no GET", route.method, route.path)
			}
			r.do(route.method, filled(route), "", nil)
			if after := state(); after != before {
				t.Fatalf("%s changed something:\n%s\n%s", route.path, before, after)
			}
		}
	})
}

// TestEveryDeniedChangeIsRecorded: whichever change somebody tries who may not, there is one action of it.
func TestEveryDeniedChangeIsRecorded(t *testing.T) {
	virtual(t, Options{}, func(r *rig) {
		bob := r.as(auth.Grant{Role: auth.Viewer})
		wanted := 0
		for _, route := range table() {
			if !route.acts {
				continue
			}
			if wanted++; route.method == http.MethodGet {
				t.Errorf("%s changes something by GET", route.path)
			}
			bob.ask(http.StatusForbidden, route.method, filled(route), nil, nil)
		}
		var page api.ActionPage
		r.get(api.Base+"/actions?limit=500", &page)
		recorded := map[string]int{}
		for _, a := range page.Actions {
			if recorded[a.What]++; a.Who != "user bob" || a.Outcome != "denied" || recorded[a.What] > 1 {
				t.Errorf("%+v", a)
			}
		}
		if len(recorded) != wanted {
			t.Errorf("%d of %d denied changes are recorded", len(recorded), wanted)
		}
	})
}
