package sdkloop

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	vendor "github.com/slack-go/slack"

	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/notify"
	"github.com/ferrymq/ferry/notify/slack"
)

// answersAfter is how long the vendor takes, which is what a loop waits for: little, for a server on the internet.
const answersAfter = 20 * time.Millisecond

// BenchmarkSlack sends each message to a webhook of its own, of a vendor in this process.
func BenchmarkSlack(b *testing.B) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		time.Sleep(answersAfter)
		_, _ = w.Write([]byte("ok"))
	}))
	defer site.Close()
	b.Run("sdk", func(b *testing.B) { loop(b, site.URL) })
	b.Run("hub", func(b *testing.B) { hub(b, site.URL) })
}

func rate(b *testing.B) { b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s") }

// loop calls the SDK. Nothing is tried again, and a crash loses what is left.
func loop(b *testing.B, url string) {
	for i := range b.N {
		m := &vendor.WebhookMessage{Text: "Disk full\nhost db1 has 2 % left"}
		if err := vendor.PostWebhookContext(b.Context(), fmt.Sprintf("%s/%d", url, i), m); err != nil {
			b.Fatal(err)
		}
	}
	rate(b)
}

// hub queues the same messages, and waits until the last receipt says that it arrived.
func hub(b *testing.B, url string) {
	broker, err := memory.Open(b.Context(), memory.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = broker.Close(context.Background()) }()
	h, err := notify.New(broker, notify.Options{Channels: map[string]notify.Channel{"slack": channel(b, url)}})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	b.ResetTimer()
	sent := make([]*notify.Handle, b.N)
	for i := range sent {
		m := notify.NewMessage("Disk full", "host db1 has 2 % left").
			AddTarget(notify.Target{Channel: "slack", To: fmt.Sprint(i)})
		if sent[i], err = h.Send(ctx, m); err != nil {
			b.Fatal(err)
		}
	}
	for _, s := range sent {
		if r, err := s.Wait(ctx); err != nil || r.Status != notify.Success {
			b.Fatal(r, err)
		}
	}
	rate(b)
	stop()
	if err := <-done; err != nil {
		b.Error(err)
	}
	_ = h.Close()
}

// channel has a webhook for each message: the vendor takes one a second of each.
func channel(b *testing.B, url string) notify.Channel {
	b.Helper()
	robots := map[string]notify.Robot{}
	for i := range b.N {
		robots[fmt.Sprint(i)] = notify.Robot{URL: fmt.Sprintf("%s/%d", url, i)}
	}
	local := notify.HTTP{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	c, err := slack.New(slack.Options{Webhooks: robots, HTTP: local})
	if err != nil {
		b.Fatal(err)
	}
	return c
}
