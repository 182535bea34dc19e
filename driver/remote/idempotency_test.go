package remote_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/ferrymq/ferry/internal/redistest"
)

// dying kills its process when a message is stored, before that is answered.
func dying(h http.Handler) http.Handler {
	return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(httptest.NewRecorder(), r)
		_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
		select {} // until that has happened
	})
}

// publish publishes one message under an idempotency key, and says whether it was stored before. It fails if there is
// no answer.
func (p *process) publish(key, body string) (duplicate bool, err error) {
	r, err := http.NewRequest(http.MethodPost, "http://"+p.address+"/v1/topics/jobs/messages", strings.NewReader(body))
	if err != nil {
		return false, err
	}
	r.Header.Set("Idempotency-Key", key)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return false, err
	}
	defer func() { _ = res.Body.Close() }()
	var receipt struct{ Duplicate bool }
	return receipt.Duplicate, json.NewDecoder(res.Body).Decode(&receipt)
}

// count is how many messages the topic has: they are received once.
func (p *process) count(t *testing.T) int {
	t.Helper()
	const receive = "/v1/topics/jobs/groups/default/receive"
	return len(p.post(t, receive, `{"max": 100, "wait": "1s", "lease": "10s"}`).Messages)
}

// A server is killed after it has stored a message and before it has said so: the repeat is told that it was stored,
// and is not stored again.
func TestIdempotencyKeyAfterAKill(t *testing.T) {
	t.Parallel()
	p := &process{kind: "dying-disk", where: t.TempDir(), address: "127.0.0.1:0"}
	p.start(t)
	if _, err := p.publish("order-1", "first"); err == nil {
		t.Fatal("the server answered, and was to be killed before")
	}
	p.kill()
	p.kind = "disk"
	p.start(t)
	defer p.kill()
	if duplicate, err := p.publish("order-1", "first"); err != nil || !duplicate {
		t.Errorf("the repeat is a duplicate: %v, %v", duplicate, err)
	}
	if n := p.count(t); n != 1 {
		t.Errorf("%d messages are stored", n)
	}
}

// The same key comes to two servers on one broker at the same instant, again and again: each is stored once.
func TestIdempotencyKeyOnTwoNodes(t *testing.T) {
	t.Parallel()
	server := redistest.Single(t, redistest.Options{})
	nodes := make([]*process, 2)
	for i := range nodes {
		nodes[i] = &process{kind: "redis", where: server.URL(), address: "127.0.0.1:0"}
		nodes[i].start(t)
		t.Cleanup(nodes[i].kill)
	}
	const keys = 20
	for i := range keys {
		var all sync.WaitGroup
		duplicates := make([]bool, len(nodes))
		for n, p := range nodes {
			all.Go(func() {
				var err error
				if duplicates[n], err = p.publish(strconv.Itoa(i), strconv.Itoa(n)); err != nil {
					t.Error(err)
				}
			})
		}
		if all.Wait(); duplicates[0] == duplicates[1] {
			t.Errorf("key %d: told to be duplicates: %v", i, duplicates)
		}
	}
	if n := nodes[0].count(t); n != keys {
		t.Errorf("%d messages are stored, want %d", n, keys)
	}
	http.DefaultClient.CloseIdleConnections()
}
