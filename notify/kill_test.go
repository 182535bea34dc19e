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
func webhooks(rates ...notify.Rate) map[string]notify.Channel {
	c, err := webhook.New(webhook.Options{Unsigned: true, HTTP: local, Rates: rates})
	if err != nil {
		panic(err)
	}
	return map[string]notify.Channel{"webhook": c}
}

// child is a hub or a vendor in a process of its own, until it is killed. It reports false in the process of the tests.
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
	if os.Getenv("FERRY_CHILD_LIMITED") != "" {
		o.Channels = webhooks(childRate)
	}
	switch vendor := os.Getenv("FERRY_CHILD_GATEWAY"); vendor {
	case "":
	case "serve":
		panic(serveVendor(b))
	default:
		o = notify.Options{Channels: gateway(vendor), Timeout: time.Second, Keep: tortureKeep}
	}
	hub, err := notify.New(b, o)
	if err != nil {
		panic(err)
	}
	w := worker.New(b, worker.Options{Concurrency: 4, Lease: 2 * time.Second})
	hub.Register(w)
	panic(w.Run(context.Background()))
}

// ledger is what vendors took.
type ledger struct {
	mu      sync.Mutex
	arrived map[string]int // by the id of the notification
	late    []string       // arrived after their success was recorded
	more    chan struct{}  // has one when something arrived
}

func newLedger() *ledger { return &ledger{arrived: map[string]int{}, more: make(chan struct{}, 1)} }

func (l *ledger) note(id string, late bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.arrived[id]++
	if late {
		l.late = append(l.late, id)
	}
	select {
	case l.more <- struct{}{}:
	default:
	}
}

func (l *ledger) total() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.arrived)
}

// await returns when n notifications have arrived, and fails the test when none does for two minutes.
func (l *ledger) await(t *testing.T, n int) {
	t.Helper()
	for l.total() < n {
		select {
		case <-l.more:
		case <-time.After(2 * time.Minute):
			t.Fatalf("%d of %d arrived, and no more do", l.total(), n)
		}
	}
}

// judge demands that each of n notifications arrived, and none after its success was recorded. How many came again
// because of kills it tells.
func (l *ledger) judge(t *testing.T, n int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	repeated := 0
	for _, times := range l.arrived {
		repeated += times - 1
	}
	if len(l.arrived) != n || len(l.late) > 0 {
		t.Errorf("%d of %d arrived, after their success %v", len(l.arrived), n, l.late)
	}
	t.Logf("%d of %d were repeated", repeated, n)
}

// receiver is a vendor that notes what arrives. What it cannot judge, since the broker does not answer, it does not
// take.
type receiver struct {
	broker *ferry.Broker
	note   func(id string, late bool)
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if !r.takes(req.Context(), req.Header.Get("Webhook-Id")) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

// takes notes what has arrived, if it can be judged.
func (r *receiver) takes(ctx context.Context, target string) bool {
	id, _, _ := strings.Cut(target, "/")
	receipt, err := notify.Get(ctx, r.broker, id)
	if err == nil {
		r.note(id, receipt.Status == notify.Success)
	}
	return err == nil
}

// Hubs are killed while they send: nothing is lost, and nothing is sent after its success was recorded.
func TestKilledHubs(t *testing.T) {
	t.Parallel()
	url := redistest.Shared(t).URL() + "?prefix=" + strings.ToLower(rand.Text())
	b, err := open.URL(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close(context.Background())
	took := newLedger()
	server := httptest.NewServer(&receiver{b, took.note})
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
		took.await(t, k*n/(2*kills))
		_ = p.Process.Kill()
		_ = p.Wait()
	}
	last := spawn(t, url)
	for _, h := range sent {
		wantStatus(t, receipt(t, h), notify.Success)
	}
	_ = last.Process.Kill()
	_ = last.Wait()

	took.judge(t, n)
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
	killAfter(t, c)
	return c
}

// killAfter kills a process when its test ends.
func killAfter(t *testing.T, c *exec.Cmd) {
	t.Helper()
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
}
