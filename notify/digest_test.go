package notify_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/ferrytest"
	"github.com/ferrymq/ferry/notify"
)

// collected sends n messages with titles title-0, title-1, … that one digest collects.
func collected(t *testing.T, hub *notify.Hub, n int, to notify.Target) (sent []*notify.Handle) {
	t.Helper()
	for i := range n {
		m := notify.NewMessage(fmt.Sprintf("title-%d", i), "b").WithDigest(notify.Digest{Window: time.Minute})
		sent = append(sent, send(t, hub, m.AddTarget(to)))
	}
	return sent
}

// once fails the test unless each of n titles arrived once in all.
func once(t *testing.T, n int, fakes ...*fake) {
	t.Helper()
	var all strings.Builder
	for _, f := range fakes {
		for _, r := range f.arrived() {
			all.WriteString(r.Title + r.Body + "\n")
		}
	}
	for i := range n {
		if got := strings.Count(all.String(), fmt.Sprintf("title-%d", i)); got != 1 {
			t.Errorf("message %d arrived %d times", i, got)
		}
	}
}

// A digest whose destination fails for good goes to the fallback that its members share, and their receipts say so.
// Those with other fallbacks are in a digest of their own.
func TestDigestFallsBack(t *testing.T) {
	first := &fake{answer: func(notify.Rendered, int) error { return errDown }}
	second, third := &fake{}, &fake{}
	o := notify.Options{Channels: map[string]notify.Channel{"a": first, "b": second, "c": third}}
	chain := func(to ...string) notify.Target {
		t := notify.Target{Channel: "a", To: "1"}
		for _, channel := range to {
			t.Fallbacks = append(t.Fallbacks, notify.Target{Channel: channel, To: "2"})
		}
		return t
	}
	run(t, o, func(t *testing.T, k *ferrytest.Kit, hub *notify.Hub) {
		toB, toC := collected(t, hub, 3, chain("b")), collected(t, hub, 2, chain("c", "b"))
		alone := collected(t, hub, 2, chain())
		k.Drain()
		once(t, 3, second)
		once(t, 2, third)
		for _, h := range append(toB, toC...) {
			r := receipt(t, h)
			wantStatus(t, r, notify.Success)
			if to := r.Targets[0]; to.Reached == nil || to.Reached.Channel == "a" || len(to.Tried) != 1 || to.Digest == "" {
				t.Errorf("the receipt is %+v", to)
			}
		}
		for _, h := range alone {
			wantStatus(t, receipt(t, h), notify.Failed)
		}
		if first.tries["1"] != 3*4 {
			t.Errorf("tries %v", first.tries)
		}
		k.ExpectDead(notify.DefaultTopic, driver.ReasonDownstream, 1)
	})
}

// Settlements are lost while a digest collects, ends, and falls back: nothing is lost and nothing arrives twice.
func TestDigestFallsBackAndSettlementsAreLost(t *testing.T) {
	for lost := 1; lost <= 6; lost++ {
		first, second := &fake{answer: func(notify.Rendered, int) error { return errGone }}, &fake{}
		o := notify.Options{Channels: map[string]notify.Channel{"a": first, "b": second}}
		run(t, o, func(t *testing.T, k *ferrytest.Kit, hub *notify.Hub) {
			k.FailSettle(lost, ferry.ErrLeaseLost)
			to := notify.Target{Channel: "a", To: "1", Fallbacks: []notify.Target{{Channel: "b", To: "2"}}}
			sent := collected(t, hub, 3, to)
			k.Drain()
			once(t, 3, second)
			for _, h := range sent {
				wantStatus(t, receipt(t, h), notify.Success)
			}
		})
	}
}

// A message that is sent again under its id, while the digest that has it is tried at a fallback, is in no other one.
func TestSameIDWhileItsDigestFallsBack(t *testing.T) {
	down := true
	first := &fake{answer: func(notify.Rendered, int) error { return errGone }}
	second := &fake{answer: func(notify.Rendered, int) error {
		if down {
			return errDown
		}
		return nil
	}}
	o := notify.Options{Channels: map[string]notify.Channel{"a": first, "b": second}}
	run(t, o, func(t *testing.T, k *ferrytest.Kit, hub *notify.Hub) {
		to := notify.Target{Channel: "a", To: "1", Fallbacks: []notify.Target{{Channel: "b", To: "2"}}}
		m := func(title string) *notify.Message {
			retry := notify.Retry{Retries: 20, Base: 15 * time.Minute, Cap: 15 * time.Minute, MaxElapsed: 4 * time.Hour}
			return notify.NewMessage(title, "b").WithID(title).WithRetry(retry).AddTarget(to).
				WithDigest(notify.Digest{Window: time.Minute})
		}
		send(t, hub, m("title-0"))
		k.Advance(20 * time.Minute)
		send(t, hub, m("title-1")) // another digest: the first is not remembered any more
		k.Advance(20 * time.Minute)
		again := send(t, hub, m("title-0"))
		k.Advance(5 * time.Minute)
		down = false
		k.Drain()
		wantStatus(t, receipt(t, again), notify.Success)
		once(t, 2, second)
	})
}

// A member of a digest that was called back stays so when the digest fails, and when it is tried again.
func TestCancelWhileADigestFails(t *testing.T) {
	f := &fake{answer: func(notify.Rendered, int) error {
		return &notify.Error{Code: notify.CodeUnavailable, Text: "503", After: 20 * time.Minute}
	}}
	run(t, notify.Options{Channels: channels("x", f)}, func(t *testing.T, k *ferrytest.Kit, hub *notify.Hub) {
		sent := collected(t, hub, 3, toX("a")[0])
		k.Advance(5 * time.Minute)
		cancel(t, sent[0], 1)
		k.Drain()
		wantStatus(t, receipt(t, sent[0]), notify.Cancelled)
		wantStatus(t, receipt(t, sent[1]), notify.Failed)
		if f.tries["a"] != 4 {
			t.Errorf("tries %v", f.tries)
		}
	})
}

// What a channel needs to know of a message it knows of a digest: mentions, and of one that stays alone everything.
func TestDataOfADigest(t *testing.T) {
	f := &fake{}
	run(t, notify.Options{Channels: channels("x", f)}, func(t *testing.T, k *ferrytest.Kit, hub *notify.Hub) {
		m := func(name, value string) *notify.Message {
			return notify.NewMessage("t", "b").WithData(name, value).WithMetadata("rule", "r").
				WithDigest(notify.Digest{Window: time.Minute}).AddTarget(toX("a")...)
		}
		send(t, hub, m("mention", "li"))
		k.Drain()
		if got := f.arrived()[0]; got.Data["mention"] != "li" || got.Metadata["rule"] != "r" {
			t.Errorf("%+v arrived", got)
		}
		send(t, hub, m("mention", "li"))
		send(t, hub, m("mention", "wang"))
		send(t, hub, m("at_all", "true"))
		k.Drain()
		if got := f.arrived()[1]; got.Data["mention"] != "li" || got.Data["at_all"] != "true" || got.Metadata != nil {
			t.Errorf("%+v arrived", got)
		}
	})
}

// A body that is no markdown does not become some in a digest.
func TestDigestOfOtherFormats(t *testing.T) {
	f := &fake{}
	run(t, notify.Options{Channels: channels("x", f)}, func(t *testing.T, k *ferrytest.Kit, hub *notify.Hub) {
		for format, body := range map[notify.Format]string{
			notify.HTML:     "<p>a &amp; b</p><script>x</script>" + strings.Repeat("<b>long</b> ", 100),
			notify.Text:     "[open](https://evil.example/) <at user_id=\"all\"> <@all> a < b",
			notify.Markdown: "[open](https://good.example/)",
		} {
			m := notify.NewMessage("[t](https://evil.example/)", body).WithFormat(format).
				WithDigest(notify.Digest{Window: time.Minute})
			send(t, hub, m.AddTarget(toX("a")...))
		}
		k.Drain()
		got := f.arrived()[0]
		for part, n := range map[string]int{"](https://evil": 0, "](https://good": 1, "<at": 0, "<@": 0, "<b": 0, "a < b": 1,
			"a & b": 1, "script": 0} {
			if strings.Count(got.Body, part) != n {
				t.Errorf("%q is not %d times in %s", part, n, got.Body)
			}
		}
	})
}

// What has no room in the broker's value is sent by itself.
func TestDigestWithoutRoom(t *testing.T) {
	f := &fake{}
	run(t, notify.Options{Channels: channels("x", f)}, func(t *testing.T, k *ferrytest.Kit, hub *notify.Hub) {
		m := notify.NewMessage("t", "b").WithData("card", strings.Repeat("x", driver.MaxValue)).
			WithDigest(notify.Digest{Window: time.Hour}).AddTarget(toX("a")...)
		h := send(t, hub, m)
		k.Advance(time.Minute)
		wantStatus(t, receipt(t, h), notify.Success)
	})
}

// A channel may have a long name: ids of digests have room for it.
func TestDigestOfALongName(t *testing.T) {
	f, name := &fake{}, strings.Repeat("x", driver.MaxNameLen)
	run(t, notify.Options{Channels: channels(name, f)}, func(t *testing.T, k *ferrytest.Kit, hub *notify.Hub) {
		for _, h := range collected(t, hub, 2, notify.Target{Channel: name, To: "a"}) {
			wantStatus(t, receipt(t, h), notify.Success)
		}
	})
}
