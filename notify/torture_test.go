package notify_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/notify"
	"github.com/ferrymq/ferry/notify/sms"
	"github.com/ferrymq/ferry/open"
)

// tortured is how many notifications TestEverythingIsKilled sends: FERRY_TORTURE_NOTIFY, 500 by default.
func tortured(t *testing.T) int {
	t.Helper()
	text := os.Getenv("FERRY_TORTURE_NOTIFY")
	if text == "" {
		return 500
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// gateway is a channel of SMS whose vendor says "taken" when it took a message, whatever the status is.
func gateway(url string) map[string]notify.Channel {
	c, err := sms.NewGateway(sms.GatewayOptions{URL: url, Body: `{{"to": "{to}"}}`, Success: "taken", HTTP: local})
	if err != nil {
		panic(err)
	}
	return map[string]notify.Channel{"sms": c}
}

// badVendor is a vendor that now and then answers 500, hangs, or answers 200 with an error. It notes what it took.
type badVendor struct{ receiver }

func (v *badVendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // until it is read nobody notices that the caller is gone
	switch trouble := rand.IntN(100); {
	case trouble < 5:
		w.WriteHeader(http.StatusInternalServerError)
	case trouble < 10:
		_, _ = w.Write([]byte(`{"error": "quota"}`))
	case trouble < 11:
		<-r.Context().Done() // the hub gives it up
	default:
		r.Header.Set("Webhook-Id", r.Header.Get("Idempotency-Key"))
		v.receiver.ServeHTTP(w, r)
		_, _ = w.Write([]byte("taken"))
	}
}

// TestEverythingIsKilled: hubs and the broker's server are killed together, again and again, while a vendor misbehaves.
// Nothing is lost, and nothing is sent after its success was recorded.
func TestEverythingIsKilled(t *testing.T) {
	n := tortured(t)
	server := redistest.Single(t, redistest.Options{AOF: "always"})
	b, err := open.URL(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close(context.Background())
	vendor := &badVendor{receiver{t: t, broker: b, arrived: map[string]int{}}}
	site := httptest.NewServer(vendor)
	defer site.Close()
	ids := queueMany(t, b, site.URL, n)

	const kills = 4
	env := []string{"FERRY_CHILD=" + server.URL(), "FERRY_CHILD_GATEWAY=" + site.URL}
	hubs := func() []*exec.Cmd { return []*exec.Cmd{spawnWith(t, env...), spawnWith(t, env...)} }
	for k := 1; k <= kills; k++ {
		running := hubs()
		for vendor.total() < k*n/(kills+1) {
			time.Sleep(time.Millisecond)
		}
		server.Kill()
		for _, p := range running {
			_ = p.Process.Kill()
			_ = p.Wait()
		}
		if err := server.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	hubs()
	for _, id := range ids {
		r, err := notify.Wait(t.Context(), b, id)
		if err != nil || r.Status != notify.Success {
			t.Fatalf("%s: %+v, %v", id, r, err)
		}
	}
	vendor.judge(t, n)
}

// judge demands that each of n notifications arrived, and none after its success was recorded. How many came again
// because of kills it tells.
func (r *receiver) judge(t *testing.T, n int) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	repeated := 0
	for _, times := range r.arrived {
		repeated += times - 1
	}
	if len(r.arrived) != n || len(r.late) > 0 {
		t.Errorf("%d of %d arrived, after their success %v", len(r.arrived), n, r.late)
	}
	t.Logf("%d of %d were repeated", repeated, n)
}

// queueMany queues n notifications to numbers of their own, and returns their ids.
func queueMany(t *testing.T, b *ferry.Broker, url string, n int) []string {
	t.Helper()
	hub := newHub(t, b, notify.Options{Channels: gateway(url)})
	defer func() { _ = hub.Close() }()
	retry := notify.Retry{Retries: 20, Base: 50 * time.Millisecond, Cap: time.Second, MaxElapsed: time.Hour}
	var ids []string
	for len(ids) < n {
		var ms []*notify.Message
		for len(ms) < min(500, n-len(ids)) {
			id := fmt.Sprintf("m%d", len(ids)+len(ms))
			ms = append(ms, notify.NewMessage("t", "b").WithID(id).WithRetry(retry).
				AddPhone("+86"+strings.Repeat("0", 2)+fmt.Sprintf("%09d", len(ids)+len(ms))))
		}
		if _, err := hub.SendBatch(t.Context(), ms...); err != nil {
			t.Fatal(err)
		}
		for _, m := range ms {
			ids = append(ids, m.ID)
		}
	}
	return ids
}
