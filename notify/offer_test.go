package notify_test

import (
	"errors"
	"testing"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/ferrytest"
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
