package notify_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/ferrytest"
	"github.com/ferrymq/ferry/internal/runtest"
	"github.com/ferrymq/ferry/notify"
)

// TestHubReloads: what is sent after a reload goes to the new channel, which goes on counting; a channel that is gone
// is refused, and what is wrong changes nothing.
func TestHubReloads(t *testing.T) {
	before, after := &fake{}, &fake{}
	to := func(channel string) *notify.Message {
		return notify.NewMessage("t", "b").AddTarget(notify.Target{Channel: channel, To: "a"})
	}
	o := notify.Options{Channels: map[string]notify.Channel{"x": before, "y": before}}
	run(t, o, func(t *testing.T, _ *ferrytest.Kit, hub *notify.Hub) {
		wantStatus(t, receipt(t, send(t, hub, to("x"))), notify.Success)
		broken := map[string]notify.MessageTemplate{"broken": {Title: "{"}}
		for name, wrong := range map[string]notify.Options{
			"no channel": {}, "a template": {Channels: channels("x", after), Templates: broken},
		} {
			if err := hub.Reload(wrong); !errors.Is(err, ferry.ErrInvalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
		wantStatus(t, receipt(t, send(t, hub, to("y"))), notify.Success)
		if err := hub.Reload(notify.Options{Channels: channels("x", after)}); err != nil {
			t.Fatal(err)
		}
		wantStatus(t, receipt(t, send(t, hub, to("x"))), notify.Success)
		if _, err := hub.Send(t.Context(), to("y")); !errors.Is(err, ferry.ErrInvalid) {
			t.Errorf("to a channel that is gone: %v", err)
		}
		if len(before.arrived()) != 2 || len(after.arrived()) != 1 || stats(t, hub, "x").Sent != 2 {
			t.Errorf("%d and %d arrived, %+v", len(before.arrived()), len(after.arrived()), stats(t, hub, "x"))
		}
	})
}

// closing is a channel that hangs until it is let go, and notes when it is closed.
type closing struct {
	begun, goOn chan struct{}
	sends       int
	closed      int
}

func newClosing() *closing {
	return &closing{begun: make(chan struct{}, 10), goOn: make(chan struct{})}
}

func (c *closing) Limits() notify.Limits { return notify.Limits{} }

func (c *closing) Send(ctx context.Context, _ notify.Rendered) (notify.Sent, error) {
	if c.closed > 0 {
		return notify.Sent{}, errors.New("it is closed")
	}
	c.begun <- struct{}{}
	select {
	case <-c.goOn:
		c.sends++
		return notify.Sent{}, nil
	case <-ctx.Done():
		return notify.Sent{}, ctx.Err()
	}
}

func (c *closing) Close() error { c.closed++; return nil }

// TestReloadWhileSending: a send that is under way goes on with the channel that it began with, a digest that is
// collected goes to the new one, and each channel is closed once, with the hub.
func TestReloadWhileSending(t *testing.T) {
	ferrytest.Run(t, func(t *testing.T, k *ferrytest.Kit) {
		before, kept, after := newClosing(), newClosing(), newClosing()
		close(after.goOn)
		hub := newHub(t, k.Broker, notify.Options{Channels: map[string]notify.Channel{"x": before, "y": kept}})
		stop := runtest.Start(t, hub.Run)
		under := send(t, hub, notify.NewMessage("t", "b").AddTarget(toX("a")...))
		digest := notify.NewMessage("t", "b").WithDigest(notify.Digest{Window: time.Minute}).AddTarget(toX("b")...)
		later := send(t, hub, digest)
		<-before.begun
		for range 3 {
			o := notify.Options{Channels: map[string]notify.Channel{"x": after, "y": kept}}
			if err := hub.Reload(o); err != nil {
				t.Fatal(err)
			}
		}
		close(before.goOn)
		wantStatus(t, receipt(t, under), notify.Success)
		wantStatus(t, receipt(t, later), notify.Success)
		if before.sends != 1 || after.sends != 1 || before.closed+after.closed+kept.closed != 0 {
			t.Errorf("%d and %d were sent", before.sends, after.sends)
		}
		stop()
		if err := hub.Close(); err != nil {
			t.Fatal(err)
		}
		if before.closed != 1 || after.closed != 1 || kept.closed != 1 {
			t.Errorf("closed %d, %d and %d times", before.closed, after.closed, kept.closed)
		}
	})
}
