package gateway_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/codec/cloudevents"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/gateway"
)

// do makes a request of any method.
func (c client) do(method, path, body string) (int, map[string]any) {
	c.t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	w := httptest.NewRecorder()
	c.g.ServeHTTP(w, r.WithContext(auth.With(c.t.Context(), c.who)))
	var out map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		c.t.Fatalf("%s %s: %q is no JSON: %v", method, path, w.Body, err)
	}
	return w.Code, out
}

// endpoint takes posts, answers the first with an error, and tells of all.
type endpoint struct {
	*httptest.Server
	mu    sync.Mutex
	fails int
	posts chan posted
}

type posted struct {
	header http.Header
	body   string
}

func newEndpoint(t *testing.T, fails int) *endpoint {
	e := &endpoint{fails: fails, posts: make(chan posted, 100)}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		e.posts <- posted{r.Header, string(body)}
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.fails > 0 {
			e.fails--
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	t.Cleanup(e.Close)
	return e
}

// signedBy reports whether a post is signed with a secret as Standard Webhooks says.
func (p posted) signedBy(t *testing.T, secret string) bool {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write([]byte(p.header.Get("Webhook-Id") + "." + p.header.Get("Webhook-Timestamp") + "." + p.body))
	return p.header.Get("Webhook-Signature") == "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// A push subscription posts each message, signed, again after a failure under the same id, in order of the key, until
// it is removed.
func TestPush(t *testing.T) {
	c, b := pushing(t)
	e := newEndpoint(t, 1)
	status, made := c.do(http.MethodPut, "/v1/push/billing", `{"topic": "jobs", "group": "g", "url": "`+e.URL+`/hook"}`)
	secret, _ := made["secret"].(string)
	if status != http.StatusOK || !strings.HasPrefix(secret, "whsec_") {
		t.Fatalf("got %d %v", status, made)
	}
	if err := b.Driver().EnsureGroup(t.Context(), "jobs", "g", driver.GroupOptions{}); err != nil {
		t.Fatal(err)
	}
	c.ok("/v1/topics/jobs/messages", `{"id": "a", "key": "k", "body": "1", "retry": {"delays": ["1ms"]}}`+"\n"+
		`{"id": "b", "key": "k", "body": "2", "headers": {"ce-type": "made"}}`,
		"Content-Type", "application/x-ndjson")
	for i, want := range []string{"a", "a", "b"} {
		p := <-e.posts
		if p.header.Get("Webhook-Id") != want || !p.signedBy(t, secret) || p.header.Get("Ferry-Topic") != "jobs" {
			t.Errorf("post %d: %+v, want %s, signed", i+1, p, want)
		}
		if want == "b" && p.header.Get("Ce-Type") != "made" {
			t.Errorf("the attribute is lost: %v", p.header)
		}
	}
	_, shown := c.do(http.MethodGet, "/v1/push/billing", "")
	if shown["secret"] != nil || shown["topic"] != "jobs" {
		t.Errorf("shown as %v", shown)
	}
	for shown["health"] == nil || shown["health"].(map[string]any)["state"] != "ok" { // it is written after the answer
		_, shown = c.do(http.MethodGet, "/v1/push/billing", "")
	}
	if h := shown["health"].(map[string]any); h["failures"] != 0.0 || !strings.Contains(h["last_error"].(string), "502") ||
		h["last_success_at"] == nil || h["last_error_at"] == nil {
		t.Errorf("its health is %v", h)
	}
	_, listed := c.do(http.MethodGet, "/v1/push", "")
	if listed["push"].(map[string]any)["billing"].(map[string]any)["secret"] != nil {
		t.Errorf("listed as %v", listed)
	}
	if status, _ := c.do(http.MethodDelete, "/v1/push/billing", ""); status != http.StatusOK {
		t.Errorf("removed with %d", status)
	}
	if status, _ := c.do(http.MethodGet, "/v1/push/billing", ""); status != http.StatusNotFound {
		t.Errorf("after it was removed: %d", status)
	}
}

// A subscription may want every message to be a CloudEvent: signed in either mode, with the attributes of what is one
// already.
func TestPushEvents(t *testing.T) {
	for mode, want := range map[string]struct{ body, contentType, id, source string }{
		"binary":     {`{"n":1}`, "application/json", "a", "/topics/jobs"},
		"structured": {"", "application/cloudevents+json", "", ""},
	} {
		c, b := pushing(t)
		e := newEndpoint(t, 0)
		if err := b.Driver().EnsureGroup(t.Context(), "jobs", "g", driver.GroupOptions{}); err != nil {
			t.Fatal(err)
		}
		_, made := c.do(http.MethodPut, "/v1/push/events", `{"topic": "jobs", "group": "g", "url": "`+e.URL+`", "events": "`+
			mode+`"}`)
		c.ok("/v1/topics/jobs/messages", `{"n":1}`, "Content-Type", "application/json", "Idempotency-Key", "a", "Ferry-Key",
			"k")
		p := <-e.posts
		if !p.signedBy(t, made["secret"].(string)) || p.header.Get("Content-Type") != want.contentType ||
			p.header.Get("Ce-Id") != want.id || p.header.Get("Ce-Source") != want.source {
			t.Errorf("%s: posted %+v", mode, p)
		}
		if want.body != "" && p.body != want.body {
			t.Errorf("%s: body %s", mode, p.body)
		}
		if want.body == "" {
			parsed, err := cloudevents.Parse(p.header.Get("Content-Type"), nil, []byte(p.body))
			if err != nil || parsed.ID != "a" || string(parsed.Data) != `{"n":1}` || parsed.Extensions["partitionkey"] != "k" {
				t.Errorf("%s: %+v, %v", mode, parsed, err)
			}
		}
	}
}

// A URL inside the network, a secret that is none, and grants that do not reach are refused.
func TestBadPushes(t *testing.T) {
	g, _ := newGateway(t, gateway.Options{})
	c := client{t, g, token(nil)}
	for body, want := range map[string]int{
		`{"topic": "jobs", "url": "http://127.0.0.1/hook"}`:                            http.StatusForbidden,
		`{"topic": "jobs", "url": "http://[::ffff:10.0.0.1]/"}`:                        http.StatusForbidden,
		`{"topic": "jobs", "url": "http://169.254.169.254/latest"}`:                    http.StatusForbidden,
		`{"topic": "jobs", "url": "file:///etc/passwd"}`:                               http.StatusBadRequest,
		`{"topic": "jobs", "url": "https://user:pw@example.com/"}`:                     http.StatusBadRequest,
		`{"topic": "a b", "url": "https://example.com/"}`:                              http.StatusBadRequest,
		`{"topic": "jobs", "url": "https://example.com/", "secret": "whsec_c2hvcnQ="}`: http.StatusBadRequest,
		`{"topic": "jobs", "url": "https://example.com/", "timeout": "1h"}`:            http.StatusBadRequest,
		`{"topic": "jobs", "url": "https://example.com/", "concurrency": 1000}`:        http.StatusBadRequest,
		`{"topic": "jobs", "url": "https://example.com/", "events": "loud"}`:           http.StatusBadRequest,
		`{"topic": "jobs", "url": "https://example.com/", "colour": "red"}`:            http.StatusBadRequest,
		`{"topic": "jobs", "url": "https://example.com/"`:                              http.StatusBadRequest,
	} {
		if status, p := c.do(http.MethodPut, "/v1/push/bad", body); status != want || p["hint"] == nil {
			t.Errorf("%s: got %d %v, want %d", body, status, p, want)
		}
	}
	for _, missing := range []auth.Scope{auth.Consume, auth.Operate} {
		c.who = token(without(missing))
		status, _ := c.do(http.MethodPut, "/v1/push/bad", `{"topic": "jobs", "url": "https://example.com/"}`)
		if status != http.StatusForbidden {
			t.Errorf("without %s: %d", missing, status)
		}
	}
	c.who = token(nil, "other")
	if status, p := c.do(http.MethodGet, "/v1/push", ""); status != http.StatusOK || len(p["push"].(map[string]any)) != 0 {
		t.Errorf("listed: %d %v", status, p)
	}
}
