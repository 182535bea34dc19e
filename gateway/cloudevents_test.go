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

// A receive may ask for CloudEvents: what is one stays what it is, percent-encoding undone, and the rest is made one; each has its lease.
func TestReceiveEvents(t *testing.T) {
	inTime(t, func(t *testing.T, c client, _ driver.Driver) {
		const path, receive = "/v1/topics/jobs/messages", "/v1/topics/jobs/groups/g/receive"
		c.ok(path, "hello", "Content-Type", "text/plain", "Idempotency-Key", "plain", "Ferry-Key", "k")
		c.ok(path, `{"n":1}`, "Content-Type", "application/json", "Ce-Specversion", "1.0", "Ce-Id", "e1", "Ce-Source", "/shop", "Ce-Type", "made", "Ce-Subject", "Euro%20%E2%82%AC")
		c.ok(path, `{"specversion": "1.0", "id": "e2", "source": "/shop", "type": "made", "data": [2]}`, "Content-Type", "application/cloudevents+json")
		c.ok(path, `{`, "Content-Type", "application/json", "Idempotency-Key", "broken")
		r := httptest.NewRequest(http.MethodPost, receive, nil)
		r.Header.Set("Accept", "application/cloudevents-batch+json")
		w := httptest.NewRecorder()
		c.g.ServeHTTP(w, r.WithContext(auth.With(t.Context(), c.who)))
		var events []map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &events); err != nil || len(events) != 4 || w.Header().Get("Content-Type") != "application/cloudevents-batch+json" {
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
		if status, p := c.post(receive, body, "Accept", "application/cloudevents-batch+json"); status != http.StatusBadRequest || !strings.Contains(p["hint"].(string), "/v1/settle") {
			t.Errorf("with settlements: %d %v", status, p)
		}
	})
}
