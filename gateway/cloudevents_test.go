package gateway_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver"
)

// A receive may ask for CloudEvents: what is one stays what it is, percent-encoding undone, and the rest is made one;
// each has its lease.
func TestReceiveEvents(t *testing.T) {
	inTime(t, func(t *testing.T, c client, _ driver.Driver) {
		const path, receive = "/v1/topics/jobs/messages", "/v1/topics/jobs/groups/g/receive"
		c.ok(path, "hello", "Content-Type", "text/plain", "Idempotency-Key", "plain", "Ferry-Key", "k")
		c.ok(path, `{"n":1}`, "Content-Type", "application/json", "Ce-Specversion", "1.0", "Ce-Id", "e1", "Ce-Source",
			"/shop", "Ce-Type", "made", "Ce-Subject", "Euro%20%E2%82%AC")
		c.ok(path, `{"specversion": "1.0", "id": "e2", "source": "/shop", "type": "made", "data": [2]}`, "Content-Type",
			"application/cloudevents+json")
		c.ok(path, `{`, "Content-Type", "application/json", "Idempotency-Key", "broken")
		r := httptest.NewRequest(http.MethodPost, receive, nil)
		r.Header.Set("Accept", "application/cloudevents-batch+json")
		w := httptest.NewRecorder()
		c.g.ServeHTTP(w, r.WithContext(auth.With(t.Context(), c.who)))
		var events []map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &events); err != nil || len(events) != 4 ||
			w.Header().Get("Content-Type") != "application/cloudevents-batch+json" {
			t.Fatalf("got %d %v %s, %v", w.Code, w.Header(), w.Body, err)
		}
		byID := map[any]map[string]any{}
		for _, e := range events {
			byID[e["id"]] = e
			if got := c.settle(e["ferrylease"], ""); got["ok"] != true || e["specversion"] != "1.0" || e["ferryattempt"] != "1" {
				t.Errorf("%v: settled as %v", e, got)
			}
		}
		if e := byID["plain"]; e["data"] != "hello" || e["source"] != "/topics/jobs" || e["partitionkey"] != "k" {
			t.Errorf("a message that is no event: %v", e)
		}
		if e := byID["e1"]; e["data"].(map[string]any)["n"] != 1.0 || e["subject"] != "Euro \u20ac" || e["type"] != "made" {
			t.Errorf("an event in binary mode: %v", e)
		}
		if e := byID["e2"]; e["data"].([]any)[0] != 2.0 || e["source"] != "/shop" {
			t.Errorf("an event in structured mode: %v", e)
		}
		if e := byID["broken"]; e["data_base64"] != "ew==" {
			t.Errorf("a body that is not what it says: %v", e)
		}
		body := `{"settle": [{"lease": "a"}]}`
		status, p := c.post(receive, body, "Accept", "application/cloudevents-batch+json")
		if status != http.StatusBadRequest || !strings.Contains(p["hint"].(string), "/v1/settle") {
			t.Errorf("with settlements: %d %v", status, p)
		}
	})
}

// A receive of one message may ask for an event of HTTP, as a push is: attributes in headers, or all of it in the body.
func TestReceiveOneEvent(t *testing.T) {
	inTime(t, func(t *testing.T, c client, _ driver.Driver) {
		const path = "/v1/topics/jobs/messages"
		ask := func(body string) *httptest.ResponseRecorder {
			r := httptest.NewRequest(http.MethodPost, "/v1/topics/jobs/groups/g/receive", strings.NewReader(body))
			w := httptest.NewRecorder()
			c.g.ServeHTTP(w, r.WithContext(auth.With(t.Context(), c.who)))
			return w
		}
		c.ok(path, "\xff", "Content-Type", "image/png", "Ce-Specversion", "1.0", "Ce-Id", "e1", "Ce-Source", "/shop",
			"Ce-Type", "made", "Ce-Subject", "Euro%20%E2%82%AC")
		w := ask(`{"events": "binary"}`)
		for name, want := range map[string]string{"Ce-Id": "e1", "Ce-Subject": "Euro%20%E2%82%AC",
			"Content-Type": "image/png", "Ce-Ferryattempt": "1"} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		if got := c.settle(w.Header().Get("Ce-Ferrylease"), ""); got["ok"] != true || w.Body.String() != "\xff" {
			t.Errorf("got %q, settled as %v", w.Body, got)
		}
		c.ok(path, "hello", "Content-Type", "text/plain", "Idempotency-Key", "plain")
		var e map[string]any
		w = ask(`{"events": "structured"}`)
		if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil ||
			w.Header().Get("Content-Type") != "application/cloudevents+json" || e["data"] != "hello" {
			t.Errorf("got %v %s, %v", w.Header(), w.Body, err)
		}
		if got := c.settle(e["ferrylease"], ""); got["ok"] != true {
			t.Errorf("settled as %v", got)
		}
		if w := ask(`{"events": "binary", "wait": "1s"}`); w.Code != http.StatusNoContent || w.Body.Len() > 0 {
			t.Errorf("without a message: %d %q", w.Code, w.Body)
		}
		for _, body := range []string{`{"events": "loud"}`, `{"events": "binary", "max": 2}`,
			`{"events": "binary", "settle": [{"lease": "a"}]}`} {
			if w := ask(body); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), `"hint"`) {
				t.Errorf("%s: %d %s", body, w.Code, w.Body)
			}
		}
	})
}
