package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redistest"
)

// demoStats runs the demo for a time, in virtual time, and returns what the broker counted.
func demoStats(t *testing.T, url string, rate float64, d time.Duration) (map[string]driver.TopicStats, *meter) {
	t.Helper()
	m := newMeter()
	b, err := openBroker(t.Context(), url, ferry.Options{Hooks: m.hooks()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if err := newDemo(b, rate).run(ctx); err != nil {
		t.Fatal(err)
	}
	return statsOfDemo(t, b), m
}

// statsOfDemo are the stats of all topics, by name. Each message must be accounted for.
func statsOfDemo(t *testing.T, b *ferry.Broker) map[string]driver.TopicStats {
	t.Helper()
	all, err := allStats(t.Context(), b.Driver())
	if err != nil {
		t.Fatal(err)
	}
	topics := map[string]driver.TopicStats{}
	for _, st := range all {
		if len(st.Groups) != 1 {
			t.Fatalf("%s has %d groups, want 1", st.Topic, len(st.Groups))
		}
		if n := accountFor(st, st.Groups[0]).missing(); n != 0 {
			t.Errorf("%d messages of %s are not accounted for: %+v", n, st.Topic, st)
		}
		topics[st.Topic] = st
	}
	return topics
}

func TestDemoIsBelievable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		topics, m := demoStats(t, "memory", 20, 305*time.Second)
		orders, mails, reports := topics[demoOrders], topics[demoMails], topics[demoReports]
		if orders.Published < 6090 || orders.Published > 6100 {
			t.Errorf("%d orders in 305 seconds, want 20 a second", orders.Published)
		}
		if mails.Published < 1475 || mails.Published > 1525 {
			t.Errorf("%d mails in 305 seconds, want 5 a second", mails.Published)
		}
		if reports.Published != 31 || reports.Groups[0].Acked != 30 || reports.Delayed != 1 {
			t.Errorf("reports %+v, want 30 handled and the next one scheduled", reports)
		}
		if mails.Delayed == 0 {
			t.Error("no mail is delayed at the end")
		}
		// Of each hundred one fails once, one twice, and one for good: at once or, one time in three, after three attempts.
		failed, _ := m.read(demoOrders)
		if share := float64(failed) / float64(orders.Published); share < 0.04 || share > 0.05 {
			t.Errorf("%d failed attempts of %d orders", failed, orders.Published)
		}
		if dead := orders.Groups[0].Dead; dead < 60 || dead > 61 {
			t.Errorf("%d dead orders, want one of a hundred", dead)
		}
		if dead := mails.Groups[0].Dead; dead < 10 || dead > 16 {
			t.Errorf("%d dead mails, want one of a hundred", dead)
		}
		if busy := orders.Groups[0].Inflight + mails.Groups[0].Inflight; busy != 0 {
			t.Errorf("%d messages are in flight after the stop", busy)
		}
	})
}

// TestDeadOrdersCanBeMended: an order without an address dies, and is handled once somebody has replayed it with one;
// one that died while billing was away is handled when it is replayed later; one that billing refused dies again.
func TestDeadOrdersCanBeMended(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, err := openBroker(t.Context(), "memory", ferry.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = b.Close(context.Background()) }()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- newDemo(b, 20).run(ctx) }()
		time.Sleep(time.Minute)
		queue, err := deadletter.New(b)
		if err != nil {
			t.Fatal(err)
		}
		all := deadletter.Selection{Topic: demoOrders}
		before, err := queue.Tally(ctx, deadletter.TallyQuery{Query: deadletter.Query{Selection: all},
			By: deadletter.ByReason})
		if err != nil || len(before.Buckets) != 3 {
			t.Fatalf("%+v, %v; want three reasons", before, err)
		}
		mend := func(_ deadletter.Letter, m *ferry.Message) error {
			m.Body = bytes.Replace(m.Body, []byte(`"address":""`), []byte(`"address":"南京路 1 号"`), 1)
			return nil
		}
		page, err := queue.Browse(ctx, deadletter.Query{Selection: all})
		if err == nil {
			_, err = queue.Replay(ctx, deadletter.ReplayOptions{Selection: all, Edit: mend})
		}
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		for _, l := range page.Letters {
			_, err := b.Driver().Get(ctx, ferry.Target{Topic: demoOrders, Group: l.Group, ID: l.ID})
			handled, young := errors.Is(err, driver.ErrNotFound), time.Since(l.Dead.DiedAt) < outage+10*time.Second
			if want := l.Dead.Reason != driver.ReasonRejected; handled != want && !young {
				t.Errorf("%s died of %q; replayed, it is handled: %v, want %v (%v)", l.ID, l.Dead.Error, handled, want, err)
			}
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestDemoOnAFullTopicGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		topics, _ := demoStats(t, "memory://?max_messages=100", 1000, 10*time.Second)
		if n := topics[demoOrders].Groups[0].Acked; n < 200 {
			t.Errorf("only %d orders were handled", n)
		}
	})
}

func runDev(t *testing.T, o devOptions, live bool) (string, error) {
	t.Helper()
	var out strings.Builder
	err := o.run(t.Context(), &terminal{w: &out, live: live})
	return out.String(), err
}

func TestDevOnATerminalRedraws(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		out, err := runDev(t, devOptions{broker: "memory", rate: 20, duration: 30500 * time.Millisecond}, true)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(out, " p95"); n != 30 {
			t.Errorf("%d pictures in 30 seconds, want 30", n)
		}
		if n := strings.Count(out, "A\x1b[J"); n < 25 {
			t.Errorf("%d pictures were replaced", n)
		}
		for line := range strings.Lines(out) {
			if n := text.StringWidthWithoutEscSequences(strings.TrimRight(line, "\n")); n > 80 {
				t.Errorf("a line of %d columns: %q", n, line)
			}
		}
		if !strings.Contains(out, "stopped after 30.5s") {
			t.Errorf("no summary in:\n%s", out)
		}
	})
}

func TestDevSummaryOnStoppingContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel) // Ctrl-C
		var out strings.Builder
		if err := (devOptions{broker: "memory", rate: 20}).run(ctx, &terminal{w: &out}); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(out.String(), "wait_p95"); n < 11 {
			t.Errorf("%d status lines in a minute, want one every 5 seconds", n)
		}
		for _, want := range []string{"[WARNING] orders are tried again: 1 of demo.orders failed",
			"[RESOLVED] orders are tried again: demo.orders/default: over after ", "stopped after 1m0", "dead letters by error",
			"order # has no address (收货地址为空)"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q is not in:\n%s", want, out.String())
			}
		}
	})
}

func TestDevOnAnEndedContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := (devOptions{broker: "memory", rate: 20}).run(ctx, &terminal{w: &strings.Builder{}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

// A handler may return anything; none of it reaches the terminal as it is.
func TestSummaryEscapesWhatMessagesSay(t *testing.T) {
	t.Parallel()
	b, err := openBroker(t.Context(), "memory", ferry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close(context.Background()) }()
	if _, err := ferry.Publish(t.Context(), b, "orders", "世界"); err != nil {
		t.Fatal(err)
	}
	sub, err := b.Driver().Subscribe(t.Context(), driver.SubscribeOptions{Topic: "orders", Instance: "test"})
	if err != nil {
		t.Fatal(err)
	}
	ds, err := sub.Receive(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	evil := &driver.Failure{Reason: driver.ReasonFatal, Error: "\x1b[Hclear\r世界\u202e " + strings.Repeat("长", 100)}
	if err := errors.Join(sub.Settle(t.Context(),
		[]driver.Settlement{{Delivery: ds[0], Outcome: driver.Dead, Failure: evil}})...); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := summarize(t.Context(), &terminal{w: &out}, b.Driver(), time.Second); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), `orders        \x1b[Hclear\r世界\u202e 长长`) {
		t.Errorf("the error is not shown in:\n%s", out.String())
	}
	if i := strings.IndexAny(out.String(), "\x1b\r\u202e"); i >= 0 {
		t.Errorf("a control character at %d is printed as it is:\n%q", i, out.String())
	}
}

func TestAccountsAddUp(t *testing.T) {
	t.Parallel()
	st := driver.TopicStats{Published: 30, Fanned: 20, Expired: 1, Cancelled: 2, Delayed: 3, Held: 4}
	late := driver.GroupStats{Received: 9, Acked: 1, Dropped: 1, Expired: 1, Cancelled: 1, Ready: 1, Inflight: 1,
		Waiting: 1, Dead: 2}
	a := accountFor(st, late)
	if want := (account{published: 19, handled: 1, dropped: 1, expired: 2, cancelled: 3, dead: 2, left: 10}); a != want {
		t.Errorf("got %+v, want %+v", a, want)
	}
	if n := a.missing(); n != 0 {
		t.Errorf("%d are missing", n)
	}
	late.Acked--
	if n := accountFor(st, late).missing(); n != 1 {
		t.Errorf("%d are missing, want 1", n)
	}
}

func TestShortly(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0:                        "0s",
		999:                      "999ns",
		1234 * time.Nanosecond:   "1.23µs",
		56789 * time.Nanosecond:  "56.8µs",
		123456789:                "123ms",
		12345 * time.Millisecond: "12.3s",
		75 * time.Second:         "1m15s",
	} {
		if got := shortly(d); got != want {
			t.Errorf("shortly(%d) = %s, want %s", d, got, want)
		}
	}
}

// The same demo runs on a Redis server, and accounts for every message there.
func TestDemoOnRedis(t *testing.T) {
	t.Parallel()
	b, err := openBroker(t.Context(), redistest.Single(t, redistest.Options{}).URL(), ferry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- newDemo(b, 20).run(ctx) }()
	for lively := false; !lively; { // ends with the test's own time limit if it never is
		select {
		case err := <-ended:
			t.Fatalf("it ended by itself: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
		all, err := allStats(t.Context(), b.Driver())
		if err != nil {
			t.Fatal(err)
		}
		handled := map[string]bool{}
		for _, st := range all {
			handled[st.Topic] = st.Published > 0 && (st.Topic == demoReports || len(st.Groups) == 1 && st.Groups[0].Acked > 0)
		}
		lively = handled[demoOrders] && handled[demoMails] && handled[demoReports]
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	statsOfDemo(t, b)
	if err := b.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// TestDevOnKafka runs a Kafka broker inside the process, and says that it is for development.
func TestDevOnKafka(t *testing.T) {
	t.Parallel()
	for url, fake := range map[string]bool{"kafka": true, "kafka://": true, "kafka:///?partitions=2": true,
		"kafka://h:9092": false, "memory": false} {
		if got := wantsFakeKafka(url); got != fake {
			t.Errorf("%s: a broker inside the process: %v, want %v", url, got, fake)
		}
	}
	out, err := runDev(t, devOptions{broker: "kafka://?partitions=2", rate: 20, duration: 5 * time.Second}, false)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, "for development") || !strings.Contains(out, "orders") {
		t.Errorf("it says:\n%s", out)
	}
}
