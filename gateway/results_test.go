package gateway_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/gateway"
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
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		<-w.Ready()
		c.ok("/v1/topics/jobs/messages", "21", "Content-Type", "application/json", "Idempotency-Key", "a")
		const path = "/v1/results/jobs/default/a"
		if _, s := c.do(http.MethodGet, path+"?wait=1s", ""); s["ended"] != false {
			t.Errorf("after a second: %v", s)
		}
		if _, s := c.do(http.MethodGet, path+"?wait=20s", ""); s["state"] != "done" || s["json"].(map[string]any)["double"] != 42.0 {
			t.Errorf("at the end: %v", s)
		}
		if _, s := c.do(http.MethodGet, path, ""); s["ended"] != true {
			t.Errorf("later: %v", s)
		}
		for path, want := range map[string]int{path + "?wait=1h": 400, path + "?wait=x": 400, "/v1/results/jobs/default/none": 404} {
			if status, p := c.do(http.MethodGet, path, ""); status != want || p["hint"] == nil {
				t.Errorf("%s: got %d %v, want %d", path, status, p, want)
			}
		}
		c.who = token(without(auth.Payload))
		if status, _ := c.do(http.MethodGet, path, ""); status != http.StatusForbidden {
			t.Errorf("without payload: %d", status)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
