package notify_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/ferrytest"
	"github.com/ferrymq/ferry/notify"
)

func TestSend(t *testing.T) {
	f := &fake{}
	run(t, notify.Options{Channels: channels("email", f)}, func(t *testing.T, _ *ferrytest.Kit, hub *notify.Hub) {
		m := notify.NewMessage("Hello", "world").WithPriority(notify.High).AddEmail("a@example.com", "b@example.com")
		r := receipt(t, send(t, hub, m))
		wantStatus(t, r, notify.Success)
		wantCount(t, f, map[string]int{"a@example.com": 1, "b@example.com": 1})
		if to := r.Targets[0]; to.Reached == nil || to.Reached.MessageID == "" || to.Attempts != 1 || r.Succeeded != 2 {
			t.Errorf("the receipt is %+v", r)
		}
		if got := f.arrived()[0]; got.Title != "Hello" || got.Body != "world" || got.Format != notify.Text {
			t.Errorf("%+v arrived", got)
		}
	})
}

// Only a target that failed is tried again.
func TestOnlyFailedTargetsAreTriedAgain(t *testing.T) {
	f := &fake{answer: func(r notify.Rendered, n int) error {
		if r.To == "b" && n < 3 {
			return errDown
		}
		return nil
	}}
	run(t, notify.Options{Channels: channels("x", f)}, func(t *testing.T, _ *ferrytest.Kit, hub *notify.Hub) {
		m := notify.NewMessage("t", "b")
		for _, to := range []string{"a", "b", "c"} {
			m.AddTarget(notify.Target{Channel: "x", To: to})
		}
		r := receipt(t, send(t, hub, m))
		wantStatus(t, r, notify.Success)
		wantCount(t, f, map[string]int{"a": 1, "b": 1, "c": 1})
		if f.tries["a"] != 1 || f.tries["b"] != 3 || r.Targets[1].Attempts != 3 {
			t.Errorf("tries %v, receipt %+v", f.tries, r)
		}
		if s := stats(t, hub, "x"); s.Sent != 3 || s.Retried != 2 {
			t.Errorf("stats %+v", s)
		}
	})
}

func TestPartialAndDeadLetter(t *testing.T) {
	f := &fake{answer: func(r notify.Rendered, _ int) error {
		switch r.To {
		case "gone":
			return errGone
		case "down":
			return errDown
		}
		return nil
	}}
	run(t, notify.Options{Channels: channels("x", f)}, func(t *testing.T, k *ferrytest.Kit, hub *notify.Hub) {
		m := notify.NewMessage("t", "b").WithRetry(notify.Aggressive)
		m.AddTarget(notify.Target{Channel: "x", To: "gone"}, notify.Target{Channel: "x", To: "down"},
			notify.Target{Channel: "x", To: "ok"})
		r := receipt(t, send(t, hub, m))
		wantStatus(t, r, notify.Partial)
		if f.tries["gone"] != 1 || f.tries["down"] != 6 || r.Targets[0].Code != notify.CodeInvalidTarget {
			t.Errorf("tries %v, receipt %+v", f.tries, r)
		}
		k.Drain()
		k.ExpectDead(notify.DefaultTopic, driver.ReasonRejected, 1)
		k.ExpectDead(notify.DefaultTopic, driver.ReasonDownstream, 1)
	})
}

// A dead letter that is replayed is tried anew; a target that was reached is not.
func TestReplayAfterSuccessIsSkipped(t *testing.T) {
	f := &fake{}
	ferrytest.Run(t, func(t *testing.T, k *ferrytest.Kit) {
		hub := newHub(t, k.Broker, notify.Options{Channels: channels("x", f)})
		m := notify.NewMessage("t", "b").WithID("m1").AddTarget(notify.Target{Channel: "x", To: "a"})
		sent := send(t, hub, m)
		queued := k.Published(notify.DefaultTopic)[0]
		k.Start(hub)
		wantStatus(t, receipt(t, sent), notify.Success)

		again := queued.Clone() // as if the acknowledgement was lost, and longer ago than ids are known
		again.ID, again.OwnID = "other", true
		if _, err := k.Broker.Publish(t.Context(), again); err != nil {
			t.Fatal(err)
		}
		k.Drain()
		wantCount(t, f, map[string]int{"a": 1})
		if s := stats(t, hub, "x"); s.Skipped != 1 {
			t.Errorf("stats %+v", s)
		}
	})
}

// The acknowledgement is lost after the record: the broker delivers again, and nothing is sent.
func TestLostAcknowledgement(t *testing.T) {
	f := &fake{}
	run(t, notify.Options{Channels: channels("x", f)}, func(t *testing.T, k *ferrytest.Kit, hub *notify.Hub) {
		k.FailSettle(1, ferry.ErrLeaseLost)
		sent := send(t, hub, notify.NewMessage("t", "b").AddTarget(notify.Target{Channel: "x", To: "a"}))
		wantStatus(t, receipt(t, sent), notify.Success)
		k.Drain()
		wantCount(t, f, map[string]int{"a": 1})
	})
}

func TestSameIDIsSentOnce(t *testing.T) {
	f := &fake{}
	run(t, notify.Options{Channels: channels("x", f)}, func(t *testing.T, k *ferrytest.Kit, hub *notify.Hub) {
		for range 3 {
			send(t, hub, notify.NewMessage("t", "b").WithID("m1").AddTarget(notify.Target{Channel: "x", To: "a"}))
			k.Drain()
			k.Advance(20 * time.Minute)
		}
		wantCount(t, f, map[string]int{"a": 1})
	})
}

// A publish that the broker refuses leaves no receipt of what is not queued, and keeps that of what was sent before.
func TestRefusedPublish(t *testing.T) {
	f := &fake{}
	run(t, notify.Options{Channels: channels("x", f)}, func(t *testing.T, k *ferrytest.Kit, hub *notify.Hub) {
		m := func() *notify.Message {
			return notify.NewMessage("t", "b").WithID("m1").AddTarget(notify.Target{Channel: "x", To: "a"})
		}
		k.FailPublish(1, ferry.ErrNotApplied)
		_, err := hub.Send(t.Context(), m())
		wantError(t, err, ferry.ErrNotApplied)
		_, err = notify.Get(t.Context(), k.Broker, "m1")
		wantError(t, err, ferry.ErrNotFound)

		wantStatus(t, receipt(t, send(t, hub, m())), notify.Success)
		k.FailPublish(1, ferry.ErrNotApplied)
		again, err := hub.Send(t.Context(), m())
		wantError(t, err, ferry.ErrNotApplied)
		wantStatus(t, receipt(t, again), notify.Success)
	})
}

func TestScheduledAndCancelled(t *testing.T) {
	f := &fake{}
	run(t, notify.Options{Channels: channels("x", f)}, func(t *testing.T, k *ferrytest.Kit, hub *notify.Hub) {
		at := time.Now().Add(48 * time.Hour)
		target := notify.Target{Channel: "x", To: "a"}
		kept := send(t, hub, notify.NewMessage("kept", "b").WithScheduledTime(at).AddTarget(target))
		gone := send(t, hub, notify.NewMessage("gone", "b").WithScheduledTime(at).AddTarget(target))
		k.Advance(47 * time.Hour)
		wantCount(t, f, map[string]int{})
		if n, err := gone.Cancel(t.Context()); n != 1 || err != nil {
			t.Errorf("cancelled %d, %v", n, err)
		}
		wantStatus(t, receipt(t, gone), notify.Cancelled)
		wantStatus(t, receipt(t, kept), notify.Success)
		k.Drain()
		if got := f.arrived(); len(got) != 1 || got[0].Title != "kept" || !time.Now().After(at.Add(-time.Second)) {
			t.Errorf("%+v arrived", got)
		}
		if n, err := kept.Cancel(t.Context()); n != 0 || err != nil {
			t.Errorf("cancelled %d that had ended, %v", n, err)
		}
	})
}

func TestFallbacks(t *testing.T) {
	first := &fake{answer: func(notify.Rendered, int) error { return errDown }}
	second := &fake{answer: func(notify.Rendered, int) error { return errGone }}
	third := &fake{}
	o := notify.Options{Channels: map[string]notify.Channel{"a": first, "b": second, "c": third}}
	run(t, o, func(t *testing.T, k *ferrytest.Kit, hub *notify.Hub) {
		m := notify.NewMessage("t", "b").AddTarget(notify.Target{Channel: "a", To: "1", Fallbacks: []notify.Target{
			{Channel: "b", To: "2"}, {Channel: "c", To: "3"}}})
		r := receipt(t, send(t, hub, m))
		wantStatus(t, r, notify.Success)
		to := r.Targets[0]
		if to.Reached.Channel != "c" || to.Reached.To != "3" || len(to.Tried) != 2 || to.Tried[0].Channel != "a" {
			t.Errorf("the receipt is %+v", to)
		}
		if first.tries["1"] != 4 || second.tries["2"] != 1 {
			t.Errorf("tries %v and %v", first.tries, second.tries)
		}
		k.Drain()
		k.ExpectDead(notify.DefaultTopic, driver.ReasonRejected, 0)
	})
}

func TestFallbacksAreUsedUp(t *testing.T) {
	f := &fake{answer: func(notify.Rendered, int) error { return errGone }}
	run(t, notify.Options{Channels: channels("x", f)}, func(t *testing.T, k *ferrytest.Kit, hub *notify.Hub) {
		m := notify.NewMessage("t", "b").AddTarget(notify.Target{Channel: "x", To: "1",
			Fallbacks: []notify.Target{{Channel: "x", To: "2"}}})
		r := receipt(t, send(t, hub, m))
		wantStatus(t, r, notify.Failed)
		k.Drain()
		k.ExpectDead(notify.DefaultTopic, driver.ReasonRejected, 1)
	})
}

func TestVendorAsksForAWait(t *testing.T) {
	f := &fake{answer: func(_ notify.Rendered, n int) error {
		if n == 1 {
			return &notify.Error{Code: notify.CodeRateLimit, Text: "429", After: 10 * time.Minute}
		}
		return nil
	}}
	run(t, notify.Options{Channels: channels("x", f)}, func(t *testing.T, _ *ferrytest.Kit, hub *notify.Hub) {
		begin := time.Now()
		r := receipt(t, send(t, hub, notify.NewMessage("t", "b").AddTarget(notify.Target{Channel: "x", To: "a"})))
		wantStatus(t, r, notify.Success)
		if took := time.Since(begin); took < 10*time.Minute {
			t.Errorf("it was tried again after %v", took)
		}
	})
}

func TestHangingChannelTimesOut(t *testing.T) {
	hang := notify.Func(func(ctx context.Context, _ notify.Rendered) (notify.Sent, error) {
		<-ctx.Done()
		return notify.Sent{}, ctx.Err()
	})
	run(t, notify.Options{Channels: channels("x", hang)}, func(t *testing.T, _ *ferrytest.Kit, hub *notify.Hub) {
		m := notify.NewMessage("t", "b").WithRetry(notify.NoRetry).AddTarget(notify.Target{Channel: "x", To: "a"})
		r := receipt(t, send(t, hub, m))
		wantStatus(t, r, notify.Failed)
		if r.Targets[0].Code != notify.CodeTimeout {
			t.Errorf("the receipt is %+v", r.Targets[0])
		}
	})
}

func TestPanickingChannel(t *testing.T) {
	bad := notify.Func(func(context.Context, notify.Rendered) (notify.Sent, error) { panic("boom") })
	run(t, notify.Options{Channels: channels("x", bad)}, func(t *testing.T, _ *ferrytest.Kit, hub *notify.Hub) {
		m := notify.NewMessage("t", "b").WithRetry(notify.NoRetry).AddTarget(notify.Target{Channel: "x", To: "a"})
		wantStatus(t, receipt(t, send(t, hub, m)), notify.Failed)
	})
}

func TestProgress(t *testing.T) {
	f := &fake{answer: func(r notify.Rendered, n int) error {
		if r.To == "slow" && n == 1 {
			return errDown
		}
		return nil
	}}
	run(t, notify.Options{Channels: channels("x", f)}, func(t *testing.T, _ *ferrytest.Kit, hub *notify.Hub) {
		m := notify.NewMessage("t", "b").AddTarget(notify.Target{Channel: "x", To: "slow"}, notify.Target{Channel: "x",
			To: "a"})
		var seen []int
		if _, err := send(t, hub, m).Watch(t.Context(), func(r notify.Receipt) {
			seen = append(seen,
				r.Succeeded)
		}); err != nil {
			t.Fatal(err)
		}
		if n := len(seen); n < 2 || seen[n-1] != 2 || seen[n-2] > 1 {
			t.Errorf("progress %v", seen)
		}
	})
}

func TestSplit(t *testing.T) {
	f := &fake{limits: notify.Limits{MaxBytes: map[notify.Format]int{notify.Text: 100},
		Split:   []notify.Format{notify.Text},
		Formats: []notify.Format{notify.Text}}}
	body := strings.TrimSuffix(strings.Repeat("一二三四五六七八九十\n", 10), "\n")
	run(t, notify.Options{Channels: channels("x", f)}, func(t *testing.T, _ *ferrytest.Kit, hub *notify.Hub) {
		r := receipt(t, send(t, hub, notify.NewMessage("t", body).AddTarget(notify.Target{Channel: "x", To: "a"})))
		wantStatus(t, r, notify.Success)
		var joined []string
		for i, part := range f.arrived() {
			if len(part.Body) > 100 || part.Part != i+1 || part.Parts != len(f.arrived()) {
				t.Errorf("part %+v", part)
			}
			joined = append(joined, part.Body)
		}
		if got := strings.Join(joined, "\n"); got != body {
			t.Errorf("got %q", got)
		}
	})
}

// A part that was taken is not sent again when a later one fails.
func TestSplitGoesOnWhereItFailed(t *testing.T) {
	failed := false
	f := &fake{limits: notify.Limits{MaxBytes: map[notify.Format]int{notify.Text: 4},
		Split: []notify.Format{notify.Text}}, answer: func(r notify.Rendered,
		_ int) error {
		if r.Part == 2 && !failed {
			failed = true
			return errDown
		}
		return nil
	}}
	run(t, notify.Options{Channels: channels("x", f)}, func(t *testing.T, _ *ferrytest.Kit, hub *notify.Hub) {
		receipt(t, send(t, hub, notify.NewMessage("t", "aaaabbbbcc").AddTarget(notify.Target{Channel: "x", To: "a"})))
		var bodies []string
		for _, r := range f.arrived() {
			bodies = append(bodies, r.Body)
		}
		if got := strings.Join(bodies, ","); got != "aaaa,bbbb,cc" {
			t.Errorf("%s arrived", got)
		}
	})
}

func TestTemplates(t *testing.T) {
	f := &fake{}
	o := notify.Options{Channels: channels("x", f), Templates: map[string]notify.MessageTemplate{
		"full": {Title: "{host}", Body: "<b>{host}</b> has {left:.1%} left", Format: notify.HTML}}}
	run(t, o, func(t *testing.T, _ *ferrytest.Kit, hub *notify.Hub) {
		m := (&notify.Message{}).WithTemplate("full", map[string]any{"host": "a&b", "left": 0.0213})
		receipt(t, send(t, hub, m.AddTarget(notify.Target{Channel: "x", To: "a"})))
		if got := f.arrived()[0]; got.Title != "a&b" || got.Body != "<b>a&amp;b</b> has 2.1% left" {
			t.Errorf("%+v arrived", got)
		}
	})
}

// Values are text, whatever they look like, and any type of number has formats.
func TestHostileVariables(t *testing.T) {
	f := &fake{}
	type id uint64
	const evil = "[x](https://evil.example/) <at id=all></at> <@all> {host} a < b"
	values := map[string]any{"v": evil, "n": id(1<<63 + 1), "f": float32(0.5), "i": int32(7), "big": int64(1<<53 + 1)}
	run(t, notify.Options{Channels: channels("x", f)}, func(t *testing.T, k *ferrytest.Kit, hub *notify.Hub) {
		for _, format := range []notify.Format{notify.Text, notify.Markdown} {
			m := notify.NewMessage("t", "{v}|{n:d}|{f:.0%}|{i:.1f}|{big:d}").WithFormat(format).AddTarget(toX("a")...)
			m.Variables = values
			send(t, hub, m)
		}
		k.Drain()
		got := f.arrived()
		if want := evil + "|9223372036854775809|50%|7.0|9007199254740993"; got[0].Body != want {
			t.Errorf("%q arrived", got[0].Body)
		}
		for _, mark := range []string{"](", "<at", "<@", "</"} {
			if strings.Contains(got[1].Body, mark) || !strings.Contains(got[1].Body, "a < b") {
				t.Errorf("%s is in %q", mark, got[1].Body)
			}
		}
	})
}

func TestWrongMessages(t *testing.T) {
	f := &fake{limits: notify.Limits{MaxBytes: map[notify.Format]int{notify.Text: 50, notify.HTML: 50},
		Formats: []notify.Format{notify.Text, notify.HTML},
		Split:   []notify.Format{notify.Text}}}
	good := func() *notify.Message {
		return notify.NewMessage("t", "b").AddTarget(notify.Target{Channel: "x", To: "a"})
	}
	many := good()
	for range notify.MaxTargets {
		many.AddTarget(notify.Target{Channel: "x", To: "a"})
	}
	fallbacks := notify.Target{Channel: "x", To: "b", Fallbacks: []notify.Target{{Channel: "x", To: "c"}}}
	for name, m := range map[string]*notify.Message{
		"nil":              nil,
		"no target":        notify.NewMessage("t", "b"),
		"too many targets": many,
		"empty":            notify.NewMessage("", "").AddTarget(notify.Target{Channel: "x", To: "a"}),
		"title too long": notify.NewMessage(strings.Repeat("题", 201), "").AddTarget(notify.Target{Channel: "x",
			To: "a"}),
		"body too long": notify.NewMessage("t", strings.Repeat("体", 4097)).AddTarget(notify.Target{Channel: "x",
			To: "a"}),
		"line break":      notify.NewMessage("t\r\nBcc: x", "b").AddTarget(notify.Target{Channel: "x", To: "a"}),
		"address":         good().AddTarget(notify.Target{Channel: "x", To: "a@b\r\nBcc: c@d"}),
		"unknown channel": good().AddTarget(notify.Target{Channel: "y", To: "a"}),
		"unknown variable": notify.NewMessage("{t}", "b").WithVariable("other",
			1).AddTarget(notify.Target{Channel: "x", To: "a"}),
		"wrong format": notify.NewMessage("{t:.1%}", "b").WithVariable("t",
			"text").AddTarget(notify.Target{Channel: "x", To: "a"}),
		"open brace": notify.NewMessage("{t", "b").WithVariable("t", 1).AddTarget(notify.Target{Channel: "x",
			To: "a"}),
		"unknown template": good().WithTemplate("none", nil),
		"not splittable": notify.NewMessage("t", strings.Repeat("x",
			51)).WithFormat(notify.HTML).AddTarget(notify.Target{Channel: "x", To: "a"}),
		"attachment": good().Attach(notify.Attachment{Name: "a.txt"}),
		"id":         good().WithID("a/b"),
		"fallback of one": good().AddTarget(notify.Target{Channel: "x", To: "a",
			Fallbacks: []notify.Target{fallbacks}}),
		"digest":            good().WithDigest(notify.Digest{Count: 101}),
		"digest and files":  good().Attach(notify.Attachment{Name: "a"}).WithDigest(notify.Digest{}),
		"retries":           good().WithRetry(notify.Retry{Retries: 21}),
		"format":            good().WithFormat("pdf"),
		"priority":          good().WithPriority(7),
		"name of file":      good().Attach(notify.Attachment{Name: "a\r\nb"}),
		"time":              good().WithScheduledTime(time.Date(2400, 1, 1, 0, 0, 0, 0, time.UTC)),
		"type of file":      good().Attach(notify.Attachment{Name: "a", ContentType: "text/plain\r\nX: y"}),
		"empty destination": good().AddTarget(notify.Target{Channel: "x"}),
	} {
		run(t, notify.Options{Channels: channels("x", f)}, func(t *testing.T, k *ferrytest.Kit, hub *notify.Hub) {
			_, err := hub.Send(t.Context(), m)
			var e *notify.Error
			if !errors.Is(err, ferry.ErrInvalid) && !errors.As(err, &e) || !strings.Contains(err.Error(), "hint") {
				t.Errorf("%s: %v", name, err)
			}
			if len(k.Published(notify.DefaultTopic)) > 0 {
				t.Errorf("%s: something was queued", name)
			}
		})
	}
}

func TestWrongOptions(t *testing.T) {
	ferrytest.Run(t, func(t *testing.T, k *ferrytest.Kit) {
		f := &fake{}
		for name, o := range map[string]notify.Options{
			"none":     {},
			"nil":      {Channels: channels("x", nil)},
			"name":     {Channels: channels("a b", f)},
			"topic":    {Channels: channels("x", f), Topic: "ferry.x"},
			"shed":     {Channels: channels("x", f), Shed: notify.Shed{Backlog: -1}},
			"template": {Channels: channels("x", f), Templates: map[string]notify.MessageTemplate{"t": {Body: "}"}}},
			"keep":     {Channels: channels("x", f), Keep: time.Millisecond},
		} {
			if _, err := notify.New(k.Broker, o); !errors.Is(err, ferry.ErrInvalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
		_, err := notify.New(nil, notify.Options{Channels: channels("x", f)})
		wantError(t, err, ferry.ErrInvalid)
		_, err = notify.Get(t.Context(), k.Broker, "none")
		wantError(t, err, ferry.ErrNotFound)
	})
}
