package notify_test

import (
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/ferrytest"
	"github.com/ferrymq/ferry/notify"
)

// named is a fake vendor whose targets are names.
type named struct{ fake }

func (*named) Destinations() []string { return []string{"ops", "team"} }

// TestSendersNeedNoSecrets: who has no channel queues for a hub of another process, and is told of wrong names before.
func TestSendersNeedNoSecrets(t *testing.T) {
	chat := &named{fake{limits: notify.Limits{Rates: []notify.Rate{{Sends: 5, Per: time.Second}}}}}
	run(t, notify.Options{Channels: channels("chat", chat)}, func(t *testing.T, k *ferrytest.Kit, _ *notify.Hub) {
		k.Advance(time.Second) // it has announced itself
		s, err := notify.NewSender(t.Context(), k.Broker, "")
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Send(t.Context(), notify.NewMessage("t", "b").AddTarget(notify.Target{Channel: "chat", To: "nobody"}))
		wantError(t, err, ferry.ErrInvalid)
		_, err = s.Send(t.Context(), notify.NewMessage("t", "b").AddEmail("ops@example.com"))
		wantError(t, err, ferry.ErrInvalid)
		h, err := s.Send(t.Context(), notify.NewMessage("t", "b").AddTarget(notify.Target{Channel: "chat", To: "ops"}))
		if err != nil {
			t.Fatal(err)
		}
		wantStatus(t, receipt(t, h), notify.Success)
		wantCount(t, &chat.fake, map[string]int{"ops": 1})
	})
}

// TestAnnouncedChannels: what processes tell of a channel is put together, and they are gone when they stop.
func TestAnnouncedChannels(t *testing.T) {
	ferrytest.Run(t, func(t *testing.T, k *ferrytest.Kit) {
		vendor := &fake{answer: func(r notify.Rendered, _ int) error {
			if r.To == "gone" {
				return errGone
			}
			return nil
		}}
		o := notify.Options{Channels: channels("webhook", vendor)}
		hub := newHub(t, k.Broker, o)
		k.Start(hub)
		k.Start(newHub(t, k.Broker, o))
		receipt(t, send(t, hub, notify.NewMessage("t", "b").AddWebhook("a", "b", "c")))
		k.Advance(time.Second) // so that it is later, whichever process sends
		receipt(t, send(t, hub, notify.NewMessage("t", "b").AddWebhook("gone")))
		k.Advance(15 * time.Second)
		found, err := notify.Announced(t.Context(), k.Broker, "")
		if err != nil || len(found) != 1 {
			t.Fatalf("%+v, %v", found, err)
		}
		c := found[0]
		if c.Name != "webhook" || c.Processes != 2 || c.Stats.Sent != 3 || c.Stats.Failed != 1 || c.Last == nil ||
			c.Last.Code != notify.CodeInvalidTarget {
			t.Errorf("%+v, last %+v", c, c.Last)
		}
	})
}

func TestNobodySends(t *testing.T) {
	ferrytest.Run(t, func(t *testing.T, k *ferrytest.Kit) {
		_, err := notify.NewSender(t.Context(), k.Broker, "")
		wantError(t, err, ferry.ErrNotFound)
	})
}
