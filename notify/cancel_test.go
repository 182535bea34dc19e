package notify_test

import (
	"context"
	"testing"
	"time"

	"github.com/ferrymq/ferry/ferrytest"
	"github.com/ferrymq/ferry/notify"
)

func toX(to ...string) (ts []notify.Target) {
	for _, one := range to {
		ts = append(ts, notify.Target{Channel: "x", To: one})
	}
	return ts
}

// cancel calls a message back and fails the test unless n targets are not sent to because of it.
func cancel(t *testing.T, h *notify.Handle, n int) {
	t.Helper()
	if got, err := h.Cancel(t.Context()); got != n || err != nil {
		t.Errorf("cancelled %d, not %d: %v", got, n, err)
	}
}

// A send that is under way and fails is not tried again once its message was called back.
func TestCancelWhileSending(t *testing.T) {
	begun, tries := make(chan struct{}), 0
	hang := notify.Func(func(ctx context.Context, _ notify.Rendered) (notify.Sent, error) {
		if tries++; tries == 1 {
			close(begun)
		}
		<-ctx.Done()
		return notify.Sent{}, ctx.Err()
	})
	run(t, notify.Options{Channels: channels("x", hang)}, func(t *testing.T, k *ferrytest.Kit, hub *notify.Hub) {
		h := send(t, hub, notify.NewMessage("t", "b").AddTarget(toX("a")...))
		<-begun
		cancel(t, h, 1)
		k.Drain()
		wantStatus(t, receipt(t, h), notify.Cancelled)
		if tries != 1 {
			t.Errorf("it was tried %d times", tries)
		}
	})
}

// A target that waits for longer than receipts are kept can be seen, and called back.
func TestCancelWhileVendorAsksForALongWait(t *testing.T) {
	f := &fake{answer: func(_ notify.Rendered, n int) error {
		if n == 1 {
			return &notify.Error{Code: notify.CodeRateLimit, Text: "429", After: 5 * time.Hour}
		}
		return nil
	}}
	run(t, notify.Options{Channels: channels("x", f)}, func(t *testing.T, k *ferrytest.Kit, hub *notify.Hub) {
		h := send(t, hub, notify.NewMessage("t", "b").AddTarget(toX("a")...))
		k.Advance(2 * time.Hour)
		cancel(t, h, 1)
		k.Advance(4 * time.Hour)
		wantCount(t, f, map[string]int{})
	})
}

// The receipt of a target that was reached first is the first that is not kept any more: the others stay themselves.
func TestCancelWhatIsLeft(t *testing.T) {
	f := &fake{answer: func(r notify.Rendered, n int) error {
		if r.To == "slow" && n == 1 {
			return &notify.Error{Code: notify.CodeRateLimit, Text: "429", After: 5 * time.Hour}
		}
		return nil
	}}
	run(t, notify.Options{Channels: channels("x", f)}, func(t *testing.T, k *ferrytest.Kit, hub *notify.Hub) {
		h := send(t, hub, notify.NewMessage("t", "b").AddTarget(toX("a", "slow")...))
		k.Advance(2 * time.Hour)
		cancel(t, h, 1)
		wantStatus(t, receipt(t, h), notify.Cancelled)
		k.Advance(5 * time.Hour)
		wantCount(t, f, map[string]int{"a": 1})
	})
}

// A digest that collects for longer than receipts are kept has members that can be called back.
func TestCancelWhatALongDigestCollects(t *testing.T) {
	f := &fake{}
	run(t, notify.Options{Channels: channels("x", f)}, func(t *testing.T, k *ferrytest.Kit, hub *notify.Hub) {
		m := notify.NewMessage("t", "b").WithDigest(notify.Digest{Window: 27 * time.Hour}).AddTarget(toX("a")...)
		h := send(t, hub, m)
		k.Advance(26 * time.Hour)
		cancel(t, h, 1)
		k.Advance(2 * time.Hour)
		wantCount(t, f, map[string]int{})
	})
}
