package wecom_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/internal/runtest"
	"github.com/ferrymq/ferry/wecom"
	"github.com/ferrymq/ferry/wecom/wecomtest"
	"github.com/ferrymq/ferry/worker"
)

// Each group of users has its own limit.
func TestGroups(t *testing.T) {
	t.Parallel()
	r := newRig(t, wecomtest.Options{}, wecom.Options{})
	config := r.vendor.Config()
	config.Users = map[string][]string{wecom.GroupVIP: {"vip"}, wecom.GroupSuspicious: {"robot", "vip"},
		wecom.GroupWhitelist: {"boss"}}
	p, err := wecom.New(r.broker, config, wecom.Options{})
	r.ok(err)
	defer p.Close()
	layers, err := p.Protection(guard.NewMemory(guard.MemoryOptions{}), nil)
	r.ok(err)
	for user, want := range map[string]int{"ann": 5, "vip": 20, "robot": 3, "boss": 50} {
		admitted := 0
		for range 50 {
			if layers.Limit.Check(t.Context(), &ferry.Message{Key: user}) != nil {
				break
			}
			r.ok(layers.Limit.Allow(t.Context(), &ferry.Message{Key: user}))
			admitted++
		}
		if admitted != want {
			t.Errorf("%s: %d, want %d", user, admitted, want)
		}
	}
}

// What a servicer writes to a customer, and what happens in the session, is keyed by the customer, and does not count
// for the customer's limit.
func TestOnlyCustomersAreLimited(t *testing.T) {
	t.Parallel()
	r := newRig(t, wecomtest.Options{}, wecom.Options{})
	layers, err := r.p.Protection(guard.NewMemory(guard.MemoryOptions{}), nil)
	r.ok(err)
	const others = 20
	for i := range others {
		m := map[string]any{"msgid": fmt.Sprint("other-", i), "open_kfid": "kf1", "external_userid": "ann",
			"origin":  wecom.FromServicer,
			"msgtype": "text", "text": wecom.Text{Content: "hello"}}
		if i%2 == 0 {
			m = map[string]any{"msgid": fmt.Sprint("event-", i), "origin": wecom.FromSystem, "msgtype": "event",
				"event": map[string]any{"event_type": "enter_session", "open_kfid": "kf1", "external_userid": "ann"}}
		}
		r.vendor.Add("kf1", "ann", m)
	}
	r.say("kf1", "ann", wecom.NormalLimit)
	r.ok(r.p.PullNow(t.Context(), "kf1", ""))
	handled := make(chan string, others+wecom.NormalLimit)
	w := worker.New(r.broker, worker.Options{})
	r.p.Handle(w, layers, func(_ context.Context, m *ferry.Msg[wecom.Message]) error {
		handled <- m.Key
		return nil
	})
	runtest.Start(r, w.Run)
	for range others + wecom.NormalLimit {
		if key := <-handled; key != "ann" {
			t.Errorf("key %q", key)
		}
	}
	if n := layers.Limit.Stats().Limited; n != 0 {
		t.Errorf("%d were limited", n)
	}
	if layers.Limit.Check(t.Context(), &ferry.Message{Key: "ann"}) == nil {
		t.Error("what ann wrote was not counted")
	}
}

// A dead letter tells who it was from without its body.
func TestDeadLetterTellsWho(t *testing.T) {
	t.Parallel()
	r := newRig(t, wecomtest.Options{}, wecom.Options{})
	layers, err := r.p.Protection(guard.NewMemory(guard.MemoryOptions{}), nil)
	r.ok(err)
	id := r.vendor.Say("kf1", "ann", "hello")
	r.vendor.Add("kf1", "ann", map[string]any{"msgid": "other", "external_userid": "ann", "msgtype": "hologram"})
	r.ok(r.p.PullNow(t.Context(), "kf1", ""))
	died := make(chan struct{})
	w := worker.New(r.broker, worker.Options{})
	r.p.Handle(w, layers, wecom.Kinds{wecom.KindText: func(context.Context, *ferry.Msg[wecom.Message]) error {
		defer close(died)
		return worker.Fatal(errors.New("no"))
	}}.Handle)
	runtest.Start(r, w.Run)
	<-died
	for {
		page, err := r.broker.Driver().Browse(t.Context(), driver.Query{Topic: wecom.Topic, Group: "default",
			State: driver.StateDead, Limit: 10})
		r.ok(err)
		stats, err := r.broker.Driver().Stats(t.Context(), wecom.Topic)
		r.ok(err)
		if len(page.Entries) == 0 || stats.Groups[0].Acked == 0 { // the unknown kind is acknowledged
			time.Sleep(5 * time.Millisecond)
			continue
		}
		h := page.Entries[0].Message.Headers
		if h[wecom.HeaderUser] != "ann" || h[wecom.HeaderGroup] != wecom.GroupNormal || h[wecom.HeaderAccount] != "kf1" ||
			h[wecom.HeaderSession] != "kf1/ann" || h[wecom.HeaderID] != id {
			t.Errorf("%v", h)
		}
		return
	}
}
