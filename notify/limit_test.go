package notify_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/ferrytest"
	"github.com/ferrymq/ferry/internal/runtest"
	"github.com/ferrymq/ferry/notify"
)

// within is the most sends that arrived in any time of length d.
func (f *fake) within(d time.Duration) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	most := 0
	for i := range f.at {
		n := 0
		for _, at := range f.at[i:] {
			if at.Sub(f.at[i]) < d {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

func TestLimitsHoldOverHubs(t *testing.T) {
	f := &fake{limits: notify.Limits{Rates: []notify.Rate{{Sends: 5, Per: time.Second}, {Sends: 20, Per: time.Minute}}}}
	run(t, notify.Options{Channels: channels("x", f)}, func(t *testing.T, k *ferrytest.Kit, hub *notify.Hub) {
		for range 4 {
			k.Start(newHub(t, k.Broker, notify.Options{Channels: channels("x", f)}))
		}
		for i := range 100 {
			send(t, hub, notify.NewMessage(fmt.Sprint(i), "b").AddTarget(notify.Target{Channel: "x", To: "a"}))
		}
		begin := time.Now()
		k.Drain()
		if n := f.within(time.Second); n > 5 {
			t.Errorf("%d arrived in a second", n)
		}
		if n := f.within(time.Minute); n > 20 {
			t.Errorf("%d arrived in a minute", n)
		}
		if took := time.Since(begin); len(f.arrived()) != 100 || took > 5*time.Minute+30*time.Second {
			t.Errorf("%d arrived in %v", len(f.arrived()), took)
		}
		for i, r := range f.arrived() { // one destination: in the order sent
			if r.Title != fmt.Sprint(i) {
				t.Fatalf("%q arrived at place %d", r.Title, i)
			}
		}
	})
}

func TestOtherDestinationsAreNotLimited(t *testing.T) {
	f := &fake{limits: notify.Limits{Rates: []notify.Rate{{Sends: 1, Per: time.Minute}}}}
	run(t, notify.Options{Channels: channels("x", f)}, func(t *testing.T, _ *ferrytest.Kit, hub *notify.Hub) {
		begin := time.Now()
		m := notify.NewMessage("t", "b")
		for i := range 50 {
			m.AddTarget(notify.Target{Channel: "x", To: fmt.Sprint(i)})
		}
		wantStatus(t, receipt(t, send(t, hub, m)), notify.Success)
		if took := time.Since(begin); took > time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// What the limits hold up is merged, and each message is in one digest.
func TestOverflowBecomesADigest(t *testing.T) {
	f := &fake{limits: notify.Limits{Rates: []notify.Rate{{Sends: 3, Per: time.Minute}}, Digest: true}}
	run(t, notify.Options{Channels: channels("x", f)}, func(t *testing.T, k *ferrytest.Kit, hub *notify.Hub) {
		var sent []*notify.Handle
		for i := range 20 {
			m := notify.NewMessage(fmt.Sprintf("title-%02d", i), "b").AddTarget(notify.Target{Channel: "x", To: "a"})
			sent = append(sent, send(t, hub, m))
		}
		k.Drain()
		got := f.arrived()
		if len(got) != 4 || got[3].Title != "17 notifications" || got[3].Format != notify.Markdown {
			t.Fatalf("%d arrived, the last is %+v", len(got), got[len(got)-1])
		}
		for i := range 20 {
			n := 0
			for _, r := range got {
				n += strings.Count(r.Title+r.Body, fmt.Sprintf("title-%02d", i))
			}
			if r := receipt(t, sent[i]); n != 1 || r.Status != notify.Success ||
				(r.Targets[0].Digest != "") != (i >= 3) {
				t.Errorf("message %d arrived %d times: %+v", i, n, r)
			}
		}
		if n := f.within(time.Minute); n > 3 {
			t.Errorf("%d arrived in a minute", n)
		}
	})
}

func TestDigestByCountAndTime(t *testing.T) {
	f := &fake{}
	o := notify.Options{Channels: channels("x", f), Keep: 24 * time.Hour}
	run(t, o, func(t *testing.T, k *ferrytest.Kit, hub *notify.Hub) {
		var sent []*notify.Handle
		for i := range 25 {
			m := notify.NewMessage(fmt.Sprint(i), "b").WithDigest(notify.Digest{Window: time.Hour, Count: 10})
			sent = append(sent, send(t, hub, m.AddTarget(notify.Target{Channel: "x", To: "a"})))
		}
		if _, err := sent[24].Cancel(t.Context()); err != nil {
			t.Fatal(err)
		}
		k.Advance(time.Minute)
		if got := f.arrived(); len(got) != 2 || got[0].Title != "10 notifications" ||
			got[1].Title != "10 notifications" {
			t.Fatalf("%+v arrived", got)
		}
		k.Advance(time.Hour)
		if got := f.arrived(); len(got) != 3 || got[2].Title != "4 notifications" {
			t.Fatalf("%+v arrived", got)
		}
		k.Drain()
		wantStatus(t, receipt(t, sent[24]), notify.Cancelled)
		for _, h := range sent[:24] {
			wantStatus(t, receipt(t, h), notify.Success)
		}
		if len(f.arrived()) != 3 {
			t.Errorf("%d arrived", len(f.arrived()))
		}
	})
}

// A message that stays alone in its digest is sent as it was.
func TestDigestOfOne(t *testing.T) {
	f := &fake{}
	body := strings.Repeat("long ", 200)
	run(t, notify.Options{Channels: channels("x", f)}, func(t *testing.T, k *ferrytest.Kit, hub *notify.Hub) {
		m := notify.NewMessage("t", body).WithDigest(notify.Digest{}).AddTarget(notify.Target{Channel: "x", To: "a"})
		wantStatus(t, receipt(t, send(t, hub, m)), notify.Success)
		if got := f.arrived(); len(got) != 1 || got[0].Title != "t" || got[0].Body != body ||
			got[0].Format != notify.Text {
			t.Errorf("%+v arrived", got)
		}
	})
}

// A digest whose send fails for good leaves one dead letter with everything, and receipts that say so.
func TestDigestThatFails(t *testing.T) {
	f := &fake{answer: func(notify.Rendered, int) error { return errGone }}
	run(t, notify.Options{Channels: channels("x", f)}, func(t *testing.T, k *ferrytest.Kit, hub *notify.Hub) {
		var sent []*notify.Handle
		for i := range 3 {
			m := notify.NewMessage(fmt.Sprint(i), "b").WithDigest(notify.Digest{Count: 3})
			sent = append(sent, send(t, hub, m.AddTarget(notify.Target{Channel: "x", To: "a"})))
		}
		k.Drain()
		for _, h := range sent {
			wantStatus(t, receipt(t, h), notify.Failed)
		}
		if dead := k.DeadLetters(notify.DefaultTopic); len(dead) != 1 || !strings.Contains(string(dead[0].Message.Body),
			"3 notifications") {
			t.Errorf("%d dead letters", len(dead))
		}
	})
}

// The settlement after joining a digest, or after ending it, is lost: nothing is sent twice, nothing is lost.
func TestDigestSurvivesLostSettlements(t *testing.T) {
	for lost := 1; lost <= 6; lost++ {
		f := &fake{}
		run(t, notify.Options{Channels: channels("x", f)}, func(t *testing.T, k *ferrytest.Kit, hub *notify.Hub) {
			k.FailSettle(lost, ferry.ErrLeaseLost)
			for i := range 5 {
				m := notify.NewMessage(fmt.Sprintf("title-%d", i), "b").WithDigest(notify.Digest{Window: time.Minute,
					Count: 3})
				send(t, hub, m.AddTarget(notify.Target{Channel: "x", To: "a"}))
			}
			k.Drain()
			for i := range 5 {
				n := 0
				for _, r := range f.arrived() {
					n += strings.Count(r.Title+r.Body, fmt.Sprintf("title-%d", i))
				}
				if n != 1 {
					t.Errorf("with %d settlements lost message %d arrived %d times", lost, i, n)
				}
			}
		})
	}
}

// A digest that waits for its turn is not sent when all its members were called back.
func TestCancelWhatADigestWasMadeOf(t *testing.T) {
	f := &fake{limits: notify.Limits{Rates: []notify.Rate{{Sends: 1, Per: 30 * time.Minute}}}}
	run(t, notify.Options{Channels: channels("x", f)}, func(t *testing.T, k *ferrytest.Kit, hub *notify.Hub) {
		send(t, hub, notify.NewMessage("first", "b").AddTarget(toX("a")...))
		k.Advance(time.Second)
		var collected []*notify.Handle
		for range 2 {
			m := notify.NewMessage("t", "b").WithDigest(notify.Digest{Window: time.Minute}).AddTarget(toX("a")...)
			collected = append(collected, send(t, hub, m))
		}
		k.Advance(10 * time.Minute)
		for _, h := range collected {
			cancel(t, h, 1)
		}
		k.Drain()
		wantStatus(t, receipt(t, collected[0]), notify.Cancelled)
		wantCount(t, f, map[string]int{"a": 1})
	})
}

// A channel that is not there any more when a digest ends: the receipts of its members say so.
func TestDigestOfAChannelThatIsGone(t *testing.T) {
	ferrytest.Run(t, func(t *testing.T, k *ferrytest.Kit) {
		before := newHub(t, k.Broker, notify.Options{Channels: channels("x", &fake{})})
		stop := runtest.Start(t, before.Run)
		m := notify.NewMessage("t", "b").WithDigest(notify.Digest{Window: time.Minute}).AddTarget(toX("a")...)
		h := send(t, before, m)
		k.Advance(30 * time.Second)
		stop()
		k.Start(newHub(t, k.Broker, notify.Options{Channels: channels("y", &fake{})}))
		k.Advance(time.Minute)
		r := receipt(t, h)
		wantStatus(t, r, notify.Failed)
		if r.Targets[0].Code != notify.CodeInvalidConfig {
			t.Errorf("the receipt is %+v", r)
		}
		k.ExpectDead(notify.DefaultTopic, driver.ReasonRejected, 1)
	})
}

// A process that was lost while it wrote the receipts of a digest leaves some to whoever has it next.
func TestReceiptsOfADigestAreFinished(t *testing.T) {
	f := &fake{}
	run(t, notify.Options{Channels: channels("x", f)}, func(t *testing.T, k *ferrytest.Kit, hub *notify.Hub) {
		var collected []*notify.Handle
		for range 2 {
			m := notify.NewMessage("t", "b").WithDigest(notify.Digest{Window: time.Minute}).AddTarget(toX("a")...)
			collected = append(collected, send(t, hub, m))
		}
		k.Drain()
		forget(t, k.Broker, collected[1].ID)
		again := published(t, k, "digest-").Clone() // as if its acknowledgement was lost
		again.ID, again.OwnID = "other", true
		if _, err := k.Broker.Publish(t.Context(), again); err != nil {
			t.Fatal(err)
		}
		k.Drain()
		wantStatus(t, receipt(t, collected[1]), notify.Success)
		wantCount(t, f, map[string]int{"a": 1})
	})
}

// published is the last message whose id begins with a prefix.
func published(t *testing.T, k *ferrytest.Kit, prefix string) *ferry.Message {
	t.Helper()
	for _, m := range slices.Backward(k.Published(notify.DefaultTopic)) {
		if strings.HasPrefix(m.ID, prefix) {
			return m
		}
	}
	t.Fatal("there is none")
	return nil
}

// forget removes the receipts of a message, as if they had not been written.
func forget(t *testing.T, b *ferry.Broker, id string) {
	t.Helper()
	for n := range 64 {
		bucket := fmt.Sprintf("%s.%02x", driver.NotifyBucket, n)
		page, err := b.Driver().KV().List(t.Context(), driver.KVQuery{Bucket: bucket, Prefix: "receipt/" + id, Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range page.Values {
			w := driver.Write{Name: v.Name, Delete: true}
			if err := b.Driver().KV().Apply(t.Context(), bucket, driver.KVOptions{}, w)[0].Err; err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestShed(t *testing.T) {
	f := &fake{}
	for _, delay := range []time.Duration{0, time.Hour} {
		ferrytest.Run(t, func(t *testing.T, k *ferrytest.Kit) {
			hub := newHub(t, k.Broker, notify.Options{Channels: channels("x", f), Shed: notify.Shed{Backlog: 5,
				Delay: delay}})
			to := notify.Target{Channel: "x", To: "a"}
			for range 5 {
				send(t, hub, notify.NewMessage("t", "b").WithPriority(notify.Low).AddTarget(to))
			}
			k.Advance(2 * time.Second)
			low := send(t, hub, notify.NewMessage("t", "b").WithPriority(notify.Low).AddTarget(to))
			normal := send(t, hub, notify.NewMessage("t", "b").AddTarget(to))
			begin := time.Now()
			k.Start(hub)
			wantStatus(t, receipt(t, normal), notify.Success)
			r := receipt(t, low)
			if delay > 0 {
				wantStatus(t, r, notify.Success)
				if took := time.Since(begin); took < delay {
					t.Errorf("it waited %v", took)
				}
			} else if r.Status != notify.Failed || r.Targets[0].Code != notify.CodeShed {
				t.Errorf("the receipt is %+v", r)
			}
			if s := stats(t, hub, "x"); s.Shed != 1 {
				t.Errorf("stats %+v", s)
			}
		})
	}
}
