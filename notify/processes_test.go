package notify_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/internal/stall"
	"github.com/ferrymq/ferry/notify"
	"github.com/ferrymq/ferry/open"
)

// childRate is the limit of the webhooks of hubs in processes of their own, if FERRY_CHILD_LIMITED is set.
var childRate = notify.Rate{Sends: 20, Per: 2 * time.Second}

// arrivals are the times at which a vendor was called.
type arrivals struct {
	mu sync.Mutex
	at []time.Time
}

func (a *arrivals) note() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at = append(a.at, time.Now())
}

// judge demands that in no time of length r.Per more than a tenth above r.Sends arrived, but for what the machine
// itself stalled from that time before on: a call that was held up counts late.
func (a *arrivals) judge(t *testing.T, r notify.Rate, stalls *stall.Meter) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	most := r.Sends + r.Sends/10
	for i := range max(0, len(a.at)-most) {
		first, last := a.at[i], a.at[i+most]
		stalled := stalls.Since(first.Add(-r.Per)) - stalls.Since(last)
		if took := last.Sub(first); took+stalled < r.Per {
			t.Errorf("%d arrived in %v, from the %dth on; the machine stalled for %v", most+1, took, i+1, stalled)
		}
	}
	t.Logf("%d arrived in %v", len(a.at), a.at[len(a.at)-1].Sub(a.at[0]))
}

// TestLimitsHoldOverProcesses: five hubs send to one destination, and are killed meanwhile. The vendor judges their
// limit by the times of arrival.
func TestLimitsHoldOverProcesses(t *testing.T) {
	server := redistest.Single(t, redistest.Options{})
	b, err := open.URL(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close(context.Background())
	var times arrivals
	took := newLedger()
	vendor := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		times.note()
		id, _, _ := strings.Cut(r.Header.Get("Webhook-Id"), "/")
		took.note(id, false)
	}))
	defer vendor.Close()
	hub := newHub(t, b, notify.Options{Channels: webhooks()})
	defer func() { _ = hub.Close() }()
	const n, processes, kills = 50, 5, 3
	var ms []*notify.Message
	for i := range n {
		ms = append(ms, notify.NewMessage("t", "b").WithID(fmt.Sprint("m", i)).AddWebhook(vendor.URL))
	}
	if _, err := hub.SendBatch(t.Context(), ms...); err != nil {
		t.Fatal(err)
	}
	stalls := stall.Watch(t)
	start := func() *exec.Cmd { return spawnWith(t, "FERRY_CHILD="+server.URL(), "FERRY_CHILD_LIMITED=yes") }
	var running []*exec.Cmd
	for range processes {
		running = append(running, start())
	}
	for k := 1; k <= kills; k++ {
		took.await(t, k*n/(kills+1))
		_ = running[0].Process.Kill()
		_ = running[0].Wait()
		running = append(slices.Delete(running, 0, 1), start())
	}
	took.await(t, n)
	times.judge(t, childRate, stalls)
}
