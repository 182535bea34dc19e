package notify_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/notify"
	"github.com/ferrymq/ferry/notify/webhook"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/worker"
)

var local = notify.HTTP{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}

// webhooks is a channel that calls servers of this host.
func webhooks() map[string]notify.Channel {
	c, err := webhook.New(webhook.Options{Unsigned: true, HTTP: local})
	if err != nil {
		panic(err)
	}
	return map[string]notify.Channel{"webhook": c}
}

// child runs a hub on the broker that FERRY_CHILD names, until it is killed. It reports false in the process of the
// tests.
func child() bool {
	url := os.Getenv("FERRY_CHILD")
	if url == "" {
		return false
	}
	slog.SetDefault(slog.New(slog.DiscardHandler))
	b, err := open.URL(context.Background(), url)
	if err != nil {
		panic(err)
	}
	o := notify.Options{Channels: webhooks()}
	if vendor := os.Getenv("FERRY_CHILD_GATEWAY"); vendor != "" {
		o = notify.Options{Channels: gateway(vendor), Timeout: time.Second}
	}
	hub, err := notify.New(b, o)
	if err != nil {
		panic(err)
	}
	w := worker.New(b, worker.Options{Concurrency: 4, Lease: 2 * time.Second})
	hub.Register(w)
	panic(w.Run(context.Background()))
}

// receiver is a vendor that notes what arrives, and whether its success was recorded before.
type receiver struct {
	t      *testing.T
	broker *ferry.Broker

	mu      sync.Mutex
	arrived map[string]int // by the id of the notification
	late    []string       // arrived after their success was recorded
}

func (r *receiver) ServeHTTP(_ http.ResponseWriter, req *http.Request) {
	id, _, _ := strings.Cut(req.Header.Get("Webhook-Id"), "/")
	receipt, err := notify.Get(req.Context(), r.broker, id)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.arrived[id]++
	if err == nil && receipt.Status == notify.Success {
		r.late = append(r.late, id)
	}
}

func (r *receiver) total() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.arrived)
}

// Hubs are killed while they send: nothing is lost, and nothing is sent after its success was recorded.
func TestKilledHubs(t *testing.T) {
	url := redistest.Shared(t).URL() + "?prefix=" + strings.ToLower(rand.Text())
	b, err := open.URL(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close(context.Background())
	vendor := &receiver{t: t, broker: b, arrived: map[string]int{}}
	server := httptest.NewServer(vendor)
	defer server.Close()
	hub := newHub(t, b, notify.Options{Channels: webhooks()})
	defer func() { _ = hub.Close() }()

	const n, kills = 600, 4
	var ms []*notify.Message
	for i := range n {
		ms = append(ms, notify.NewMessage("t", "b").WithRetry(notify.Aggressive).AddWebhook(fmt.Sprintf("%s/%d", server.URL,
			i)))
	}
	sent, err := hub.SendBatch(t.Context(), ms...)
	if err != nil {
		t.Fatal(err)
	}
	for k := 1; k <= kills; k++ { // each has sent some when it is killed
		p := spawn(t, url)
		for vendor.total() < k*n/(2*kills) {
			time.Sleep(time.Millisecond)
		}
		_ = p.Process.Kill()
		_ = p.Wait()
	}
	last := spawn(t, url)
	for _, h := range sent {
		wantStatus(t, receipt(t, h), notify.Success)
	}
	_ = last.Process.Kill()
	_ = last.Wait()

	vendor.judge(t, n)
}

func spawn(t *testing.T, url string) *exec.Cmd {
	t.Helper()
	return spawnWith(t, "FERRY_CHILD="+url)
}

func spawnWith(t *testing.T, env ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), env...)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return c
}
