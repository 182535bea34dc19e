package notify_test

import (
	"errors"
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

// TestSendersKnowTemplates: who queues elsewhere has the templates of the hubs that run, as they are after a reload.
func TestSendersKnowTemplates(t *testing.T) {
	f := &fake{}
	full := notify.MessageTemplate{Title: "{host}", Body: "<b>{left:.1%}</b>", Format: notify.HTML}
	o := notify.Options{Channels: channels("x", f), Templates: map[string]notify.MessageTemplate{"磁盘": full, "old": full}}
	run(t, o, func(t *testing.T, k *ferrytest.Kit, hub *notify.Hub) {
		try := func(template string, variables map[string]any) error {
			s, err := notify.NewSender(t.Context(), k.Broker, "")
			if err != nil {
				t.Fatal(err)
			}
			m := (&notify.Message{}).WithTemplate(template, variables).AddTarget(toX("a")...)
			_, err = s.Send(t.Context(), m)
			return err
		}
		values := map[string]any{"host": "db1", "left": 0.02}
		k.Advance(time.Second)
		if err := errors.Join(try("磁盘", values), try("old", values)); err != nil {
			t.Fatal(err)
		}
		wantError(t, try("磁盘", map[string]any{"host": "db1"}), ferry.ErrInvalid)
		k.Drain()
		if got := f.arrived()[0]; got.Title != "db1" || got.Body != "<b>2.0%</b>" || got.Format != notify.HTML {
			t.Errorf("%+v arrived", got)
		}
		delete(o.Templates, "old")
		if err := hub.Reload(o); err != nil {
			t.Fatal(err)
		}
		k.Advance(time.Minute)
		wantError(t, try("old", values), ferry.ErrInvalid)
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
