package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/gateway"
	"github.com/ferrymq/ferry/internal/frame"
)

// client speaks JSON with a gateway.
type client struct {
	t   *testing.T
	g   http.Handler
	who *auth.Identity
}

func (c client) post(path, body string, headers ...string) (int, map[string]any) {
	c.t.Helper()
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	c.g.ServeHTTP(w, r.WithContext(auth.With(c.t.Context(), c.who)))
	var out map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		c.t.Fatalf("POST %s: %q is no JSON: %v", path, w.Body, err)
	}
	return w.Code, out
}

// ok posts, and demands a good answer.
func (c client) ok(path, body string, headers ...string) map[string]any {
	c.t.Helper()
	status, out := c.post(path, body, headers...)
	if status >= 300 {
		c.t.Fatalf("POST %s: %d %v", path, status, out)
	}
	return out
}

// receive takes messages of the group g of the topic jobs.
func (c client) receive(body string) []map[string]any {
	c.t.Helper()
	return objects(c.ok("/v1/topics/jobs/groups/g/receive", body)["messages"])
}

func objects(list any) []map[string]any {
	var out []map[string]any
	for _, v := range list.([]any) {
		out = append(out, v.(map[string]any))
	}
	return out
}

// settle ends one delivery.
func (c client) settle(lease any, rest string) map[string]any {
	c.t.Helper()
	return objects(c.ok("/v1/settle", fmt.Sprintf(`{"settle": [{"lease": %q%s}]}`, lease, rest))["settled"])[0]
}

// inTime runs a test with a client that may do everything, in virtual time.
func inTime(t *testing.T, f func(t *testing.T, c client, d driver.Driver)) {
	synctest.Test(t, func(t *testing.T) {
		g, b := newGateway(t, gateway.Options{})
		if err := b.Driver().EnsureGroup(t.Context(), "jobs", "g", driver.GroupOptions{}); err != nil {
			t.Fatal(err)
		}
		f(t, client{t, g, token(nil)}, b.Driver())
	})
}

func TestPublishOne(t *testing.T) {
	inTime(t, func(t *testing.T, c client, d driver.Driver) {
		headers := []string{
			"Content-Type", "text/plain", "Idempotency-Key", "order-1", "Ferry-Key", "ann", "Ferry-Delay", "5s",
			"Ferry-Priority", "high", "Ferry-Ttl", "1h",
			"Ferry-Max-Attempts", "3", "Ferry-Header-Trace", "abc", "Ce-Type", "order.made",
		}
		out := c.ok("/v1/topics/jobs/messages", "hello", headers...)
		if out["id"] != "order-1" || out["id_window"] != "1m0s" {
			t.Errorf("got %v", out)
		}
		if status, out := c.post("/v1/topics/jobs/messages", "hello", headers...); status != http.StatusOK ||
			out["duplicate"] != true {
			t.Errorf("again: %d %v", status, out)
		}
		start := time.Now()
		m := c.receive(`{"wait": "20s"}`)[0]
		if waited := time.Since(start); waited != 5*time.Second {
			t.Errorf("it came after %v", waited)
		}
		if m["body"] != "hello" || m["key"] != "ann" || m["content_type"] != "text/plain" || m["attempt"] != 1.0 ||
			m["cause"] != "first" {
			t.Errorf("got %v", m)
		}
		if h := m["headers"].(map[string]any); h["trace"] != "abc" || h["ce-type"] != "order.made" {
			t.Errorf("got headers %v", h)
		}
		if got := c.settle(m["lease"], ""); got["ok"] != true {
			t.Errorf("got %v", got)
		}
		if s, err := d.Stats(t.Context(), "jobs"); err != nil || s.Groups[0].Acked != 1 {
			t.Errorf("%+v, %v", s, err)
		}
	})
}

// Each message of a batch has its own result, and what is wrong with one does not hold up the others.
func TestPublishMany(t *testing.T) {
	inTime(t, func(t *testing.T, c client, _ driver.Driver) {
		for contentType, body := range map[string]string{
			"application/x-ndjson": `{"id": "a", "json": {"n": 1}}

{"priority": "loud"}
{"body_base64": "/w==", "headers": {"h": "v"}}
`,
			"application/vnd.ferry.batch+json": `[{"id": "b", "json": {"n": 1}}, {"priority": "loud"}, {"body_base64": "/w=="}]`,
		} {
			got := objects(c.ok("/v1/topics/jobs/messages", body, "Content-Type", contentType)["receipts"])
			if len(got) != 3 || got[0]["id"] == nil || got[1]["error"].(map[string]any)["code"] != "invalid" ||
				got[2]["id"] == nil {
				t.Errorf("%s: got %v", contentType, got)
			}
			ms := c.receive("")
			if len(ms) != 2 || ms[0]["json"].(map[string]any)["n"] != 1.0 || ms[1]["body_base64"] != "/w==" {
				t.Errorf("%s: received %v", contentType, ms)
			}
		}
	})
}

// A frame has many messages, too, each with its own result; what is cut off, or not meant for this route, stores
// nothing.
func TestPublishFrame(t *testing.T) {
	inTime(t, func(t *testing.T, c client, _ driver.Driver) {
		marshal := func(q frame.Publish) string {
			data, err := frame.Marshal(&q)
			if err != nil {
				t.Fatal(err)
			}
			return string(data)
		}
		whole := marshal(frame.Publish{Messages: []*driver.Message{{ID: "a", Key: "k", Body: []byte("1")}, {Topic: "other"},
			nil, {Topic: "jobs", Body: []byte("2")}}})
		got := objects(c.ok("/v1/topics/jobs/messages", whole, "Content-Type", frame.ContentType)["receipts"])
		if len(got) != 4 || got[0]["id"] != "a" || got[0]["id_window"] == nil || got[1]["error"] == nil ||
			got[2]["error"] == nil || got[3]["id"] == nil {
			t.Errorf("got %v", got)
		}
		if ms := c.receive(""); len(ms) != 2 || ms[0]["body"] != "1" || ms[0]["key"] != "k" || ms[1]["body"] != "2" {
			t.Errorf("received %v", ms)
		}
		for what, body := range map[string]string{
			"nothing": "", "cut off": whole[:len(whole)-1], "another version": "\x02" + whole[1:], "more": whole + "a",
			"with options": marshal(frame.Publish{Options: driver.PublishOptions{Atomic: true}}),
		} {
			if status, p := c.post("/v1/topics/jobs/messages", body, "Content-Type",
				frame.ContentType); status != http.StatusBadRequest || p["hint"] == nil {
				t.Errorf("%s: %d %v", what, status, p)
			}
		}
		if ms := c.receive(`{"wait": "1s"}`); len(ms) != 0 {
			t.Errorf("received %v", ms)
		}
	})
}

func TestOutcomes(t *testing.T) {
	inTime(t, func(t *testing.T, c client, d driver.Driver) {
		one := func(body string) map[string]any {
			t.Helper()
			c.ok("/v1/topics/jobs/messages", body)
			return c.receive("")[0]
		}
		c.settle(one("retry")["lease"], `, "outcome": "retry", "after": "3s", "error": "billing is away"`)
		again := c.receive("")[0]
		if again["attempt"] != 2.0 || again["cause"] != "retry" {
			t.Errorf("after a retry: %v", again)
		}
		c.settle(again["lease"], `, "outcome": "drop"`)
		c.settle(one("release")["lease"], `, "outcome": "release"`)
		released := c.receive("")[0]
		if released["attempt"] != 1.0 || released["cause"] != "released" {
			t.Errorf("after a release: %v", released)
		}
		c.settle(released["lease"], `, "outcome": "ack", "emit": [{"topic": "mails", "json": {"to": "ann"}}]`)
		if s, err := d.Stats(t.Context(), "mails"); err != nil || s.Published != 1 {
			t.Errorf("the follow-up: %+v, %v", s, err)
		}
		c.settle(one("dead")["lease"], `, "outcome": "dead", "reason": "too_old", "error": "of last year"`)
		p, err := d.Browse(t.Context(), driver.Query{Topic: "jobs", Group: "g", State: driver.StateDead})
		if err != nil || len(p.Entries) != 1 || p.Entries[0].Dead.Reason != "too_old" ||
			p.Entries[0].Dead.Error != "of last year" {
			t.Errorf("dead letters: %+v, %v", p, err)
		}
	})
}

// A message that fails again and again dies after as many attempts as it has, and one that is lost again and again
// after five.
func TestEndsOfAttempts(t *testing.T) {
	inTime(t, func(t *testing.T, c client, d driver.Driver) {
		c.ok("/v1/topics/jobs/messages", "fails", "Ferry-Max-Attempts", "2")
		for range 2 {
			c.settle(c.receive("")[0]["lease"], `, "outcome": "retry"`)
		}
		c.ok("/v1/topics/jobs/messages", "kills")
		for i := range 5 {
			if got := c.receive(`{"lease": "1s"}`)[0]["deliveries"]; got != float64(i+1) {
				t.Errorf("delivery %d says %v", i+1, got)
			}
			time.Sleep(2 * time.Second)
		}
		if got := c.receive(`{"wait": "1s"}`); len(got) != 0 {
			t.Errorf("delivered once more: %v", got)
		}
		p, err := d.Browse(t.Context(), driver.Query{Topic: "jobs", Group: "g", State: driver.StateDead})
		if err != nil || len(p.Entries) != 2 || p.Entries[0].Dead.Reason != driver.ReasonMaxAttempts ||
			p.Entries[1].Dead.Reason != driver.ReasonMaxDeliveries {
			t.Errorf("dead letters: %+v, %v", p.Entries, err)
		}
	})
}

// Settle and receive are one request, and a lease lives as long as it is extended.
func TestSettleAndReceive(t *testing.T) {
	inTime(t, func(t *testing.T, c client, _ driver.Driver) {
		c.ok("/v1/topics/jobs/messages", `{"key": "k", "body": "a"}`+"\n"+`{"key": "k", "body": "b"}`, "Content-Type",
			"application/x-ndjson")
		a := c.receive(`{"lease": "10s"}`)
		if len(a) != 1 || a[0]["body"] != "a" {
			t.Fatalf("got %v, want the first of the key alone", a)
		}
		for range 3 {
			time.Sleep(8 * time.Second)
			got := objects(c.ok("/v1/extend", fmt.Sprintf(`{"leases": [%q]}`, a[0]["lease"]))["extended"])
			if got[0]["ok"] != true {
				t.Fatalf("extend: %v", got)
			}
		}
		out := c.ok("/v1/topics/jobs/groups/g/receive", fmt.Sprintf(`{"lease": "10s", "settle": [{"lease": %q}]}`,
			a[0]["lease"]))
		if objects(out["settled"])[0]["ok"] != true || objects(out["messages"])[0]["body"] != "b" {
			t.Errorf("got %v", out)
		}
	})
}

// A lease is good at the gateway that gave it, for who received it, as it was given, until it is over.
func TestLeases(t *testing.T) {
	inTime(t, func(t *testing.T, c client, d driver.Driver) {
		c.ok("/v1/topics/jobs/messages", "a")
		lease := c.receive(`{"lease": "5s"}`)[0]["lease"].(string)
		code := func(by client, lease string) any {
			t.Helper()
			p, _ := by.settle(lease, "")["error"].(map[string]any)
			return p["code"]
		}
		other := c
		other.who = token(nil)
		other.who.Name = "other"
		parts := strings.Split(lease, ".")
		for what, x := range map[string]struct {
			by    client
			lease string
			want  string
		}{
			"another gateway's":   {c, "elsewhere." + strings.Join(parts[1:], "."), "lease_elsewhere"},
			"tampered with":       {c, strings.Join([]string{parts[0], parts[1], "zz", parts[3]}, "."), "invalid"},
			"rubbish":             {c, "rubbish", "invalid"},
			"nothing":             {c, "", "invalid"},
			"by somebody else":    {other, lease, "lease_lost"},
			"with another node's": {c, parts[0] + "..." + parts[3], "invalid"},
		} {
			if got := code(x.by, x.lease); got != x.want {
				t.Errorf("%s: got %v, want %s", what, got, x.want)
			}
		}
		time.Sleep(6 * time.Second)
		if got := code(c, lease); got != "lease_lost" {
			t.Errorf("too late: got %v", got)
		}
	})
}

func TestBadRequests(t *testing.T) {
	inTime(t, func(t *testing.T, c client, _ driver.Driver) {
		const publish, receive = "/v1/topics/jobs/messages", "/v1/topics/jobs/groups/g/receive"
		for _, x := range []struct {
			path, body string
			headers    []string
			status     int
			code       string
		}{
			{"/v1/dance", "", nil, 404, "not_found"},
			{"/v1/topics/a%20b/messages", "", nil, 400, "invalid"},
			{"/v1/topics/ferry.own/messages", "", nil, 400, "invalid"},
			{"/v1/topics/ferry.own/groups/g/receive", "", nil, 400, "invalid"},
			{publish, "a", []string{"Ferry-Delay", "soon"}, 400, "invalid"},
			{publish, "a", []string{"Content-Encoding", "gzip"}, 400, "invalid"},
			{publish, "a", []string{"Ferry-Header-Note", "\xff"}, 400, "invalid"},
			{publish, "a", []string{"Ce-Subject", "%ff"}, 400, "invalid"},
			{publish, "a", []string{"Ferry-Colour", "red"}, 400, "invalid"},
			{publish, "a", []string{"Ferry-Priority", "loud"}, 400, "invalid"},
			{publish, "{", []string{"Content-Type", "application/x-ndjson"}, 400, "invalid"},
			{publish, `{"colour": 1}`, []string{"Content-Type", "application/x-ndjson"}, 400, "invalid"},
			{publish, `{}`, []string{"Content-Type", "application/vnd.ferry.batch+json"}, 400, "invalid"},
			{publish, strings.Repeat("a", 4<<20+1), nil, 413, "too_large"},
			{publish, strings.Repeat("{}\n", 10_001), []string{"Content-Type", "application/x-ndjson"}, 413, "too_large"},
			{receive, `{"max": -1}`, nil, 400, "invalid"},
			{receive, `{"wait": "1h"}`, nil, 400, "invalid"},
			{receive, `{"lease": "1ms"}`, nil, 501, "unsupported"},
			{receive, `[]`, nil, 400, "invalid"},
			{"/v1/settle", `{`, nil, 400, "invalid"},
			{"/v1/extend", `{"lease": "a"}`, nil, 400, "invalid"},
		} {
			status, p := c.post(x.path, x.body, x.headers...)
			if status != x.status || p["code"] != x.code || p["hint"] == nil || p["status"] != float64(x.status) {
				t.Errorf("%s %.40q %v: got %d %v, want %d %s", x.path, x.body, x.headers, status, p, x.status, x.code)
			}
		}
	})
}

// Each route needs its scope on its topic.
func TestRoutesNeedScopes(t *testing.T) {
	inTime(t, func(t *testing.T, c client, _ driver.Driver) {
		for path, scope := range map[string]auth.Scope{"/v1/topics/jobs/messages": auth.Publish,
			"/v1/topics/jobs/groups/g/receive": auth.Consume} {
			for _, who := range []*auth.Identity{nil, token(without(scope)), token(nil, "other")} {
				c.who = who
				if status, p := c.post(path, ""); status != http.StatusForbidden || p["code"] != "refused" {
					t.Errorf("%s as %v: %d %v", path, who, status, p)
				}
			}
		}
	})
}

// A full topic says so, and when to come again.
func TestFullTopic(t *testing.T) {
	inTime(t, func(t *testing.T, c client, d driver.Driver) {
		if err := d.AlterTopic(t.Context(), "jobs", driver.TopicConfig{MaxMessages: 1}); err != nil {
			t.Fatal(err)
		}
		c.ok("/v1/topics/jobs/messages", "a")
		w := post(c.g, c.who, "/v1/topics/jobs/messages", "text/plain", []byte("b"))
		if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
			t.Errorf("got %d, %v", w.Code, w.Header())
		}
	})
}

// writes counts those of an answer.
type writes struct {
	*httptest.ResponseRecorder
	n int
}

func (w *writes) Write(p []byte) (int, error) {
	w.n++
	return w.ResponseRecorder.Write(p)
}

// What is received together is written together.
func TestStreamWritesManyAtOnce(t *testing.T) {
	inTime(t, func(t *testing.T, c client, _ driver.Driver) {
		c.ok("/v1/topics/jobs/messages", strings.Repeat("{}\n", 100), "Content-Type", "application/x-ndjson")
		ctx, cancel := context.WithTimeout(auth.With(t.Context(), c.who), time.Second)
		defer cancel()
		w := &writes{ResponseRecorder: httptest.NewRecorder()}
		c.g.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/topics/jobs/groups/g/stream?max=100", nil).WithContext(ctx))
		if got := strings.Count(w.Body.String(), `"lease":`); got != 100 || w.n > 10 {
			t.Errorf("%d messages came in %d writes", got, w.n)
		}
	})
}

// A stream brings at most as many as are not settled, and what is held when it ends goes back.
func TestStream(t *testing.T) {
	for accept, prefix := range map[string]string{"application/x-ndjson": "{", "text/event-stream": "data: {"} {
		t.Run(accept, func(t *testing.T) {
			g, b := newGateway(t, gateway.Options{})
			c := client{t, g, token(nil)}
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				g.ServeHTTP(w, r.WithContext(auth.With(r.Context(), c.who)))
			}))
			defer s.Close()
			c.ok("/v1/topics/jobs/messages", "{}\n{}\n{}\n", "Content-Type", "application/x-ndjson")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/v1/topics/jobs/groups/default/stream?max=2", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Accept", accept)
			resp, err := s.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			lines := bufio.NewScanner(resp.Body)
			next := func() map[string]any {
				t.Helper()
				for lines.Scan() {
					if text := lines.Text(); strings.HasPrefix(text, prefix) {
						var m map[string]any
						if err := json.Unmarshal([]byte(strings.TrimPrefix(text, "data: ")), &m); err != nil {
							t.Fatal(err)
						}
						return m
					}
				}
				t.Fatalf("the stream ended: %v", lines.Err())
				return nil
			}
			first := next()
			next()
			if s, err := b.Driver().Stats(ctx, "jobs"); err != nil || s.Groups[0].Ready != 1 || s.Groups[0].Inflight != 2 {
				t.Errorf("with two of three sent: %+v, %v", s, err)
			}
			c.settle(first["lease"], "")
			next()
			cancel()
			for { // until the gateway has noticed
				s, err := b.Driver().Stats(t.Context(), "jobs")
				if err != nil {
					t.Fatal(err)
				}
				if s.Groups[0].Ready == 2 && s.Groups[0].Consumers == 0 {
					break
				}
				runtime.Gosched()
			}
		})
	}
}
