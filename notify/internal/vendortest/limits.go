package vendortest

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/notify"
)

// Meter counts calls as a vendor does, by the times that their signatures are of: those of virtual time.
type Meter struct {
	Rates []notify.Rate
	// Silence is for how long a vendor refuses everything after one call too many.
	Silence time.Duration

	mu      sync.Mutex
	calls   []time.Time
	silent  time.Time
	texts   []string
	refused int
}

// Takes reports whether a vendor takes a text that was sent at a time. Calls come one after the other.
func (m *Meter) Takes(at time.Time, text string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	within := at.Before(m.silent)
	for _, r := range m.Rates {
		n := 0
		for _, c := range m.calls {
			if at.Sub(c) < r.Per {
				n++
			}
		}
		within = within || n >= r.Sends
	}
	if within {
		m.refused++
		m.silent = at.Add(m.Silence)
		return false
	}
	m.calls, m.texts = append(m.calls, at), append(m.texts, text)
	return true
}

// Refused is how many texts were not taken.
func (m *Meter) Refused() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.refused
}

func (m *Meter) all() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(m.texts, "\n")
}

// SendMany sends n notifications to robot "ops" of a channel by two hubs, which start begins, and fails the test unless
// after drain the vendor has each of them once, by itself or in a digest, and its receipt says so.
func (m *Meter) SendMany(t *testing.T, b *ferry.Broker, c notify.Channel, n int, start func(*notify.Hub),
	drain func()) {
	t.Helper()
	var hub *notify.Hub
	for range 2 {
		var err error
		o := notify.Options{Channels: map[string]notify.Channel{"robot": c}, Keep: 24 * time.Hour}
		if hub, err = notify.New(b, o); err != nil {
			t.Fatal(err)
		}
		start(hub)
	}
	var sent []*notify.Handle
	for i := range n {
		text := notify.NewMessage(fmt.Sprintf("title-%03d", i), "b")
		h, err := hub.Send(t.Context(), text.AddTarget(notify.Target{Channel: "robot", To: "ops"}))
		if err != nil {
			t.Fatal(err)
		}
		sent = append(sent, h)
	}
	drain()
	all := m.all()
	for i, h := range sent {
		r, err := h.Receipt(t.Context())
		if got := strings.Count(all, fmt.Sprintf("title-%03d", i)); got != 1 || err != nil || r.Status != notify.Success {
			t.Errorf("notification %d arrived %d times: %+v, %v", i, got, r, err)
		}
	}
}
