package notify_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/ferrytest"
	"github.com/ferrymq/ferry/notify"
)

// fake is a channel that answers as a test says and notes what arrived, when.
type fake struct {
	limits notify.Limits
	answer func(r notify.Rendered, n int) error // n: of this destination, from 1; nil takes everything

	mu    sync.Mutex
	got   []notify.Rendered
	at    []time.Time
	tries map[string]int
}

func (f *fake) Limits() notify.Limits { return f.limits }

func (f *fake) Send(_ context.Context, r notify.Rendered) (notify.Sent, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.tries == nil {
		f.tries = map[string]int{}
	}
	f.tries[r.To]++
	if f.answer != nil {
		if err := f.answer(r, f.tries[r.To]); err != nil {
			return notify.Sent{}, err
		}
	}
	f.got, f.at = append(f.got, r), append(f.at, time.Now())
	return notify.Sent{ID: "v-" + r.ID}, nil
}

// arrived is what the vendor took so far.
func (f *fake) arrived() []notify.Rendered {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.got)
}

// count is how often each destination was reached.
func (f *fake) count() map[string]int {
	n := map[string]int{}
	for _, r := range f.arrived() {
		n[r.To]++
	}
	return n
}

var (
	errDown = &notify.Error{Code: notify.CodeUnavailable, Text: "status 500"}
	errGone = &notify.Error{Code: notify.CodeInvalidTarget, Text: "no such address"}
)

// run calls a test in virtual time, with a hub that runs.
func run(t *testing.T, o notify.Options, test func(t *testing.T, k *ferrytest.Kit, hub *notify.Hub)) {
	t.Helper()
	ferrytest.Run(t, func(t *testing.T, k *ferrytest.Kit) {
		hub := newHub(t, k.Broker, o)
		k.Start(hub)
		test(t, k, hub)
	})
}

func newHub(t *testing.T, b *ferry.Broker, o notify.Options) *notify.Hub {
	t.Helper()
	hub, err := notify.New(b, o)
	if err != nil {
		t.Fatal(err)
	}
	return hub
}

func channels(name string, c notify.Channel) map[string]notify.Channel {
	return map[string]notify.Channel{name: c}
}

func send(t *testing.T, hub *notify.Hub, m *notify.Message) *notify.Handle {
	t.Helper()
	h, err := hub.Send(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// receipt returns that of a message when it has ended.
func receipt(t *testing.T, h *notify.Handle) notify.Receipt {
	t.Helper()
	r, err := h.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func wantStatus(t *testing.T, r notify.Receipt, want notify.Status) {
	t.Helper()
	if r.Status != want {
		t.Errorf("the status is %s, not %s: %+v", r.Status, want, r)
	}
}

func wantCount(t *testing.T, f *fake, want map[string]int) {
	t.Helper()
	if got := f.count(); !maps.Equal(got, want) {
		t.Errorf("%v arrived, not %v", got, want)
	}
}

func wantError(t *testing.T, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("got %v, want %v", err, kind)
	}
}

func stats(t *testing.T, hub *notify.Hub, channel string) notify.ChannelStats {
	t.Helper()
	s, err := hub.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s.Channels[channel]
}
