package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/gateway"
	"github.com/ferrymq/ferry/internal/runtest"
)

// pushing returns a client of a gateway that posts, to this machine, too, until the test ends.
func pushing(t *testing.T) (client, *ferry.Broker) {
	t.Helper()
	g, b := newGateway(t, gateway.Options{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	runtest.Start(t, g.Run)
	return client{t, g, token(nil)}, b
}

// hook is an endpoint that counts posts by the id of their message.
type hook struct {
	*httptest.Server
	mu    sync.Mutex
	posts []string // ids in the order in which they came
}

// newHook serves with answer, which is called with the id of a message.
func newHook(t *testing.T, answer func(h *hook, w http.ResponseWriter, r *http.Request, id string)) *hook {
	t.Helper()
	h := &hook{}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		id := r.Header.Get("Webhook-Id")
		h.mu.Lock()
		h.posts = append(h.posts, id)
		h.mu.Unlock()
		answer(h, w, r, id)
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *hook) seen() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.posts)
}

// subscribe pushes a topic of the same name as the subscription to a URL, and returns the answer. The group is there
// before any message.
func (c client) subscribe(b *ferry.Broker, name, url, rest string) map[string]any {
	c.t.Helper()
	if err := b.Driver().EnsureGroup(c.t.Context(), name, "g", driver.GroupOptions{}); err != nil {
		c.t.Fatal(err)
	}
	body := fmt.Sprintf(`{"topic": %q, "group": "g", "url": %q%s}`, name, url, rest)
	status, p := c.do(http.MethodPut, "/v1/push/"+name, body)
	if status != http.StatusOK {
		c.t.Fatalf("%d %v", status, p)
	}
	return p
}

// until waits for what the group of a topic comes to.
func until(t *testing.T, b *ferry.Broker, topic, what string, reached func(s driver.GroupStats) bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		s, err := b.Driver().Stats(t.Context(), topic)
		if err == nil && len(s.Groups) == 1 && reached(s.Groups[0]) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("never %s: %+v, %v", what, s, err)
		}
	}
}

func acked(n uint64) func(driver.GroupStats) bool {
	return func(s driver.GroupStats) bool { return s.Acked == n }
}

// What follows a good status does not matter: neither that it never ends, nor that it never comes. It was an ack, and
// is posted once.
func TestPushIsDecidedByTheStatus(t *testing.T) {
	over := make(chan struct{})
	defer close(over)
	for name, answer := range map[string]func(w http.ResponseWriter, r *http.Request){
		"slow": func(w http.ResponseWriter, r *http.Request) { // it begins a body, and nothing more
			w.WriteHeader(http.StatusOK)
			_, _ = io.WriteString(w, "o")
			_ = http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
			case <-over:
			}
		},
		"huge": func(w http.ResponseWriter, _ *http.Request) { // a gigabyte
			chunk := make([]byte, 1<<20)
			for range 1 << 10 {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		},
	} {
		c, b := pushing(t)
		h := newHook(t, func(_ *hook, w http.ResponseWriter, r *http.Request, _ string) { answer(w, r) })
		c.subscribe(b, name, h.URL, `, "timeout": "5s"`)
		c.ok("/v1/topics/"+name+"/messages", "x", "Idempotency-Key", "a")
		until(t, b, name, "acked", acked(1))
		if got := h.seen(); len(got) != 1 {
			t.Errorf("%s: posted %d times", name, len(got))
		}
	}
}

// An endpoint that is gone for good gets nothing twice.
func TestPushToAnEndpointThatIsGone(t *testing.T) {
	c, b := pushing(t)
	h := newHook(t, func(_ *hook, w http.ResponseWriter, _ *http.Request, _ string) { w.WriteHeader(http.StatusGone) })
	c.subscribe(b, "jobs", h.URL, "")
	c.ok("/v1/topics/jobs/messages", "x")
	until(t, b, "jobs", "dead", func(s driver.GroupStats) bool { return s.Dead == 1 })
	if got := h.seen(); len(got) != 1 {
		t.Errorf("posted %d times", len(got))
	}
}

// A redirect to another host is not followed, whatever it is that answers there.
func TestPushThatIsRedirected(t *testing.T) {
	c, b := pushing(t)
	other := newHook(t, func(*hook, http.ResponseWriter, *http.Request, string) {
		t.Error("the redirect was followed")
	})
	to := map[string]string{"a": other.URL, "b": "http://169.254.169.254/latest"}
	h := newHook(t, func(_ *hook, w http.ResponseWriter, r *http.Request, id string) {
		http.Redirect(w, r, to[id], http.StatusTemporaryRedirect)
	})
	c.subscribe(b, "jobs", h.URL, "")
	c.ok("/v1/topics/jobs/messages", "x", "Idempotency-Key", "a", "Ferry-Max-Attempts", "1")
	c.ok("/v1/topics/jobs/messages", "x", "Idempotency-Key", "b", "Ferry-Max-Attempts", "1")
	until(t, b, "jobs", "dead", func(s driver.GroupStats) bool { return s.Dead == 2 })
}

// While the head of a key fails its followers wait, and other keys do not.
func TestPushOrderWhileAKeyFails(t *testing.T) {
	c, b := pushing(t)
	h := newHook(t, func(h *hook, w http.ResponseWriter, _ *http.Request, id string) {
		if id == "a1" && !slices.Contains(h.seen(), "b2") {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	c.subscribe(b, "jobs", h.URL, "")
	var lines []string
	for _, id := range []string{"a1", "a2", "b1", "b2"} {
		line := fmt.Sprintf(`{"id": %q, "key": %q, "max_attempts": 1000, "retry": {"delays": ["1ms"]}}`, id, id[:1])
		lines = append(lines, line)
	}
	c.ok("/v1/topics/jobs/messages", strings.Join(lines, "\n"), "Content-Type", "application/x-ndjson")
	until(t, b, "jobs", "acked", acked(4))
	got := h.seen()
	first := func(id string) int { return slices.Index(got, id) }
	last := len(got) - 1
	if first("a2") != last || first("b1") > first("b2") || slices.Contains(got[first("b2"):last], "b1") {
		t.Errorf("posted as %v", got)
	}
}

// What is being posted while a subscription is paused is finished; what comes then waits until it goes on.
func TestPushIsPausedDuringAPost(t *testing.T) {
	c, b := pushing(t)
	posted, answer := make(chan struct{}, 2), make(chan struct{})
	h := newHook(t, func(*hook, http.ResponseWriter, *http.Request, string) {
		posted <- struct{}{}
		<-answer
	})
	c.subscribe(b, "jobs", h.URL, "")
	c.ok("/v1/topics/jobs/messages", "x", "Idempotency-Key", "a")
	<-posted
	c.subscribe(b, "jobs", h.URL, `, "paused": true`)
	close(answer)
	until(t, b, "jobs", "paused", func(s driver.GroupStats) bool { return s.Acked == 1 && s.Consumers == 0 })
	c.ok("/v1/topics/jobs/messages", "x", "Idempotency-Key", "b")
	if got := h.seen(); !slices.Equal(got, []string{"a"}) {
		t.Errorf("posted %v", got)
	}
	c.subscribe(b, "jobs", h.URL, "")
	until(t, b, "jobs", "acked", acked(2))
	if got := h.seen(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("posted %v", got)
	}
}

// A subscription that is removed while its endpoint hangs does not keep another one from its posts.
func TestPushBesideAnEndpointThatHangs(t *testing.T) {
	c, b := pushing(t)
	hangs, over := make(chan struct{}), make(chan struct{})
	slow := newHook(t, func(*hook, http.ResponseWriter, *http.Request, string) {
		close(hangs)
		<-over
	})
	defer close(over)
	fast := newHook(t, func(*hook, http.ResponseWriter, *http.Request, string) {})
	c.subscribe(b, "slow", slow.URL, `, "timeout": "1m"`)
	c.ok("/v1/topics/slow/messages", "x")
	<-hangs
	if status, p := c.do(http.MethodDelete, "/v1/push/slow", ""); status != http.StatusOK {
		t.Fatalf("%d %v", status, p)
	}
	c.subscribe(b, "fast", fast.URL, "")
	c.ok("/v1/topics/fast/messages", "x")
	until(t, b, "fast", "acked", acked(1))
}

// The query of a URL is posted to, and shown to nobody. A URL that comes back as it was shown keeps it.
func TestPushQueryIsNotShown(t *testing.T) {
	const secret = "s3cr3t"
	c, b := pushing(t)
	queries := make(chan string, 2)
	h := newHook(t, func(_ *hook, _ http.ResponseWriter, r *http.Request, _ string) { queries <- r.URL.RawQuery })
	c.subscribe(b, "jobs", h.URL+"/in?key="+secret, "")
	shown := h.URL + "/in?***"
	for range 2 {
		c.ok("/v1/topics/jobs/messages", "x")
		if got := <-queries; got != "key="+secret {
			t.Errorf("posted to %q", got)
		}
		_, one := c.do(http.MethodGet, "/v1/push/jobs", "")
		_, all := c.do(http.MethodGet, "/v1/push", "")
		if one["url"] != shown || strings.Contains(fmt.Sprint(one, all), secret) {
			t.Errorf("shown as %v, listed as %v", one, all)
		}
		if again := c.subscribe(b, "jobs", shown, `, "concurrency": 1`); again["url"] != shown {
			t.Errorf("put as %v", again)
		}
	}
	if _, removed := c.do(http.MethodDelete, "/v1/push/jobs", ""); removed["url"] != shown {
		t.Errorf("removed as %v", removed)
	}
}
