package remote_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/ferrymq/ferry/internal/redistest"
)

// answered is what the JSON routes answer that this test needs.
type answered struct {
	Messages []struct {
		ID, Lease  string
		Deliveries int
	}
	Settled []struct {
		OK    bool
		Error struct {
			Code   string
			Status int
		}
	}
}

// post asks a server in JSON.
func (p *process) post(t *testing.T, path, body string) (a answered) {
	t.Helper()
	res, err := http.Post("http://"+p.address+path, "application/json", bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if err := json.NewDecoder(res.Body).Decode(&a); err != nil || res.StatusCode >= http.StatusMultipleChoices {
		t.Fatalf("%s: %d, %v", path, res.StatusCode, err)
	}
	return a
}

// Two gateways share one Redis: a lease is good where it was given, and refused elsewhere with a code of its own. When
// its gateway is killed it runs out, and the other one delivers the message again.
func TestTwoNodes(t *testing.T) {
	t.Parallel()
	server := redistest.Single(t, redistest.Options{})
	one, other := &process{kind: "redis", where: server.URL(), address: "127.0.0.1:0"},
		&process{kind: "redis", where: server.URL(), address: "127.0.0.1:0"}
	for _, p := range []*process{one, other} {
		p.start(t)
		t.Cleanup(p.kill)
	}
	const receive = "/v1/topics/jobs/groups/default/receive"
	if got := one.post(t, receive, `{"wait": "0s", "lease": "2s"}`); len(got.Messages) != 0 {
		t.Fatalf("received %v of an empty topic", got)
	}
	one.post(t, "/v1/topics/jobs/messages", `{"n": 1}`)
	got := one.post(t, receive, `{"wait": "20s", "lease": "2s"}`)
	if len(got.Messages) != 1 {
		t.Fatalf("received %v", got)
	}
	settle := fmt.Sprintf(`{"settle": [{"lease": %q}]}`, got.Messages[0].Lease)
	if s := other.post(t, "/v1/settle", settle).Settled[0]; s.OK || s.Error.Code != "lease_elsewhere" ||
		s.Error.Status != http.StatusConflict {
		t.Errorf("settled at the other gateway: %+v", s)
	}
	one.kill()
	var again answered
	for end := time.Now().Add(time.Minute); len(again.Messages) == 0; {
		if time.Now().After(end) {
			t.Fatal("what the killed gateway held was not delivered again")
		}
		again = other.post(t, receive, `{"wait": "20s", "lease": "10s"}`)
	}
	if m := again.Messages[0]; m.ID != got.Messages[0].ID || m.Deliveries != 2 {
		t.Errorf("received %+v, want the same message for the second time", m)
	}
	settle = fmt.Sprintf(`{"settle": [{"lease": %q}]}`, again.Messages[0].Lease)
	if s := other.post(t, "/v1/settle", settle).Settled[0]; !s.OK {
		t.Errorf("settled: %+v", s)
	}
}
