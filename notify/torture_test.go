package notify_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/notify"
	"github.com/ferrymq/ferry/notify/sms"
	"github.com/ferrymq/ferry/open"
)

// tortureKeep is longer than any run: a receipt that is gone says nothing of a success.
const tortureKeep = 24 * time.Hour

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

// badVendor is a vendor that now and then answers 500, hangs, or answers 200 with an error.
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
	case !v.takes(r.Context(), r.Header.Get("Idempotency-Key")):
		w.WriteHeader(http.StatusServiceUnavailable)
	default:
		_, _ = w.Write([]byte("taken"))
	}
}

// serveVendor is a vendor in a process of its own. It prints its address, and of each notification that it takes a line
// before it answers, so that what it took is known however it ends.
func serveVendor(b *ferry.Broker) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + l.Addr().String())
	vendor := &badVendor{receiver{b, func(id string, late bool) { fmt.Println(id, late) }}}
	return (&http.Server{Handler: vendor, ReadHeaderTimeout: time.Minute}).Serve(l)
}

// startVendor starts one, and returns its address. What it takes is noted in the ledger.
func startVendor(t *testing.T, broker string, took *ledger) (*exec.Cmd, string) {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), "FERRY_CHILD="+broker, "FERRY_CHILD_GATEWAY=serve")
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stdout = write
	if err := errors.Join(c.Start(), write.Close()); err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	t.Cleanup(reading.Wait)
	killAfter(t, c)
	lines := bufio.NewScanner(read)
	if !lines.Scan() {
		t.Fatalf("the vendor does not start: %v", lines.Err())
	}
	address := lines.Text()
	reading.Go(func() {
		defer func() { _ = read.Close() }()
		for lines.Scan() {
			id, late, _ := strings.Cut(lines.Text(), " ")
			took.note(id, late == "true")
		}
	})
	return c, address
}

// TestEverythingIsKilled: hubs, the broker's server and the vendor are killed together, again and again, while the
// vendor misbehaves. Nothing is lost, and nothing is sent after its success was recorded.
func TestEverythingIsKilled(t *testing.T) {
	t.Parallel()
	n := tortured(t)
	server := redistest.Single(t, redistest.Options{AOF: "always"})
	b, err := open.URL(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close(context.Background())
	ids := queueMany(t, b, n)

	const kills = 4
	took := newLedger()
	start := func() []*exec.Cmd {
		vendor, address := startVendor(t, server.URL(), took)
		env := []string{"FERRY_CHILD=" + server.URL(), "FERRY_CHILD_GATEWAY=" + address}
		return []*exec.Cmd{vendor, spawnWith(t, env...), spawnWith(t, env...)}
	}
	for k := 1; k <= kills; k++ {
		running := start()
		took.await(t, k*n/(kills+1))
		if k%2 == 0 { // the server goes first, or last
			server.Kill()
		}
		for _, p := range running {
			_ = p.Process.Kill()
			_ = p.Wait()
		}
		if err := server.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	start()
	for _, id := range ids {
		r, err := notify.Wait(t.Context(), b, id)
		if err != nil || r.Status != notify.Success {
			t.Fatalf("%s: %+v, %v", id, r, err)
		}
	}
	took.await(t, n) // what was printed last may still be on its way
	took.judge(t, n)
}

// queueMany queues n notifications to numbers of their own, and returns their ids.
func queueMany(t *testing.T, b *ferry.Broker, n int) []string {
	t.Helper()
	hub := newHub(t, b, notify.Options{Channels: gateway("http://127.0.0.1"), Keep: tortureKeep}) // it does not send
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
