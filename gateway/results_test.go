package gateway_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/gateway"
	"github.com/ferrymq/ferry/internal/runtest"
	"github.com/ferrymq/ferry/result"
	"github.com/ferrymq/ferry/worker"
)

// The result of a handler is told to who waits for it, and how far it is to who does not.
func TestResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, b := newGateway(t, gateway.Options{})
		c := client{t, g, token(nil)}
		keep, err := result.Keep(b, result.Options{})
		if err != nil {
			t.Fatal(err)
		}
		w := worker.New(b, worker.Options{})
		w.Use(keep)
		worker.Handle(w, "jobs", func(ctx context.Context, m *ferry.Msg[int]) error {
			time.Sleep(5 * time.Second)
			return result.Return(ctx, map[string]int{"double": 2 * m.Value})
		})
		runtest.Start(t, w.Run)
		<-w.Ready()
		c.ok("/v1/topics/jobs/messages", "21", "Content-Type", "application/json", "Idempotency-Key", "a")
		const path = "/v1/results/jobs/default/a"
		if _, s := c.do(http.MethodGet, path+"?wait=1s", ""); s["ended"] != false {
			t.Errorf("after a second: %v", s)
		}
		if _, s := c.do(http.MethodGet, path+"?wait=20s", ""); s["state"] != "done" ||
			s["json"].(map[string]any)["double"] != 42.0 {
			t.Errorf("at the end: %v", s)
		}
		if _, s := c.do(http.MethodGet, path, ""); s["ended"] != true {
			t.Errorf("later: %v", s)
		}
		for path, want := range map[string]int{path + "?wait=1h": 400, path + "?wait=x": 400,
			"/v1/results/jobs/default/none": 404} {
			if status, p := c.do(http.MethodGet, path, ""); status != want || p["hint"] == nil {
				t.Errorf("%s: got %d %v, want %d", path, status, p, want)
			}
		}
		c.who = token(without(auth.Payload))
		if status, _ := c.do(http.MethodGet, path, ""); status != http.StatusForbidden {
			t.Errorf("without payload: %d", status)
		}
	})
}

// A client in another language returns a result with its ack: it is there before the message is gone, and one that is
// refused leaves the message with its holder.
func TestResultOfAClient(t *testing.T) {
	inTime(t, func(t *testing.T, c client, _ driver.Driver) {
		for _, id := range []string{"a", "b", "c", "d"} {
			c.ok("/v1/topics/jobs/messages", id, "Idempotency-Key", id)
		}
		leases := map[any]any{}
		for _, d := range c.receive(`{}`) {
			leases[d["id"]] = d["lease"]
		}
		for id, x := range map[string]struct{ rest, code string }{
			"a": {`, "result": {"json": {"double": 42}}`, ""},
			"b": {`, "result": {"body": "hello", "content_type": "text/plain"}`, ""},
			"c": {`, "outcome": "retry", "result": {"body": "x"}`, "invalid"},
			"d": {`, "result": {"body": "` + strings.Repeat("x", driver.MaxValue) + `"}`, "too_large"},
		} {
			got := c.settle(leases[id], x.rest)
			p, _ := got["error"].(map[string]any)
			if got["ok"] != (x.code == "") || x.code != "" && (p["code"] != x.code || p["hint"] == nil) {
				t.Errorf("%s: settled as %v", id, got)
			}
		}
		if _, s := c.do(http.MethodGet, "/v1/results/jobs/g/a?wait=1s", ""); s["state"] != "done" ||
			s["json"].(map[string]any)["double"] != 42.0 {
			t.Errorf("a value: %v", s)
		}
		if _, s := c.do(http.MethodGet, "/v1/results/jobs/g/b", ""); s["state"] != "done" || s["body"] != "hello" ||
			s["content_type"] != "text/plain" {
			t.Errorf("a text: %v", s)
		}
		for _, id := range []string{"c", "d"} {
			if _, s := c.do(http.MethodGet, "/v1/results/jobs/g/"+id, ""); s["state"] != "running" {
				t.Errorf("%s, which was refused: %v", id, s)
			}
			if got := c.settle(leases[id], ""); got["ok"] != true {
				t.Errorf("%s, settled again: %v", id, got)
			}
		}
	})
}

// Whoever acknowledges without a lease any more has no result: the message is somebody else's.
func TestResultOfALostLease(t *testing.T) {
	inTime(t, func(t *testing.T, c client, _ driver.Driver) {
		c.ok("/v1/topics/jobs/messages", "1", "Idempotency-Key", "a")
		old := c.receive(`{"lease": "5s"}`)[0]["lease"]
		again := c.receive(`{"lease": "10s", "wait": "20s"}`)
		if len(again) != 1 {
			t.Fatalf("it came again %d times", len(again))
		}
		if got := c.settle(again[0]["lease"], `, "result": {"json": "new"}`); got["ok"] != true {
			t.Fatal(got)
		}
		if got := c.settle(old, `, "result": {"json": "old"}`); got["ok"] != false ||
			got["error"].(map[string]any)["code"] != "lease_lost" {
			t.Errorf("settled as %v", got)
		}
		if _, s := c.do(http.MethodGet, "/v1/results/jobs/g/a", ""); s["json"] != "new" {
			t.Errorf("the result: %v", s)
		}
	})
}
