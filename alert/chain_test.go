package alert_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/alert"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/internal/runtest"
	"github.com/ferrymq/ferry/notify"
	"github.com/ferrymq/ferry/notify/email"
	"github.com/ferrymq/ferry/notify/slack"
	"github.com/ferrymq/ferry/notify/sms"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/worker"
)

// vendors are a Slack, a mail server with TLS and a vendor of SMS that take what is right and refuse the rest.
type vendors struct {
	web   *httptest.Server
	mail  int // its port
	roots *x509.CertPool

	mu      sync.Mutex
	arrived map[string][]string // by vendor
}

func (v *vendors) note(vendor, text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.arrived[vendor] = append(v.arrived[vendor], text)
}

// has reports whether each vendor got a text with all parts.
func (v *vendors) has(parts ...string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, vendor := range []string{"slack", "email", "sms"} {
		found := false
		for _, text := range v.arrived[vendor] {
			whole := true
			for _, p := range parts {
				whole = whole && strings.Contains(text, p)
			}
			found = found || whole
		}
		if !found {
			return false
		}
	}
	return true
}

// ServeHTTP answers as Slack does below /slack, and as Aliyun's SMS does elsewhere.
func (v *vendors) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/slack" {
		var m struct{ Text string }
		if json.NewDecoder(r.Body).Decode(&m) != nil || m.Text == "" {
			http.Error(w, "invalid_payload", http.StatusBadRequest)
			return
		}
		v.note("slack", m.Text)
		_, _ = io.WriteString(w, "ok")
		return
	}
	q := r.URL.Query()
	if !strings.HasPrefix(r.Header.Get("Authorization"), "ACS3-HMAC-SHA256 Credential=id,") ||
		q.Get("SignName") != "Ferry" {
		_, _ = io.WriteString(w, `{"Code":"SignatureDoesNotMatch","Message":"m"}`)
		return
	}
	v.note("sms", q.Get("TemplateParam"))
	_, _ = io.WriteString(w, `{"Code":"OK","BizId":"1"}`)
}

// mailbox is a session of the mail server.
type mailbox struct{ *vendors }

func (mailbox) Mail(string, *smtp.MailOptions) error { return nil }
func (mailbox) Rcpt(string, *smtp.RcptOptions) error { return nil }
func (mailbox) Reset()                               {}
func (mailbox) Logout() error                        { return nil }

func (m mailbox) Data(r io.Reader) error {
	data, err := io.ReadAll(r)
	m.note("email", string(data))
	return err
}

// startVendors starts them, with the certificate of httptest.
func startVendors(t *testing.T) *vendors {
	t.Helper()
	v := &vendors{arrived: map[string][]string{}, roots: x509.NewCertPool()}
	v.web = httptest.NewTLSServer(v)
	t.Cleanup(v.web.Close)
	v.roots.AddCert(v.web.Certificate())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	v.mail = l.Addr().(*net.TCPAddr).Port
	s := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return mailbox{v}, nil }))
	s.TLSConfig = &tls.Config{Certificates: v.web.TLS.Certificates, MinVersion: tls.VersionTLS12}
	s.ReadTimeout, s.WriteTimeout = time.Minute, time.Minute
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Serve(l) })
	t.Cleanup(func() { _, _ = s.Close(), l.Close(); serving.Wait() }) // Serve may not have begun
	return v
}

// channels call the vendors.
func (v *vendors) channels(t *testing.T) map[string]notify.Channel {
	t.Helper()
	local := notify.HTTP{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, RootCAs: v.roots}
	chat, errChat := slack.New(slack.Options{HTTP: local,
		Webhooks: map[string]notify.Robot{"ops": {URL: v.web.URL + "/slack"}}})
	texts, errTexts := sms.NewAliyun(sms.AliyunOptions{HTTP: local, AccessKeyID: "id", AccessKeySecret: "secret",
		SignName: "Ferry", TemplateCode: "SMS_1", Params: map[string]string{"content": "{title}"}, Endpoint: v.web.URL})
	mails, errMails := email.New(email.Options{Host: "127.0.0.1", Port: v.mail, From: "ops@example.com",
		TLSConfig: &tls.Config{RootCAs: v.roots, ServerName: "example.com", MinVersion: tls.VersionTLS12}})
	if err := errors.Join(errChat, errTexts, errMails); err != nil {
		t.Fatal(err)
	}
	return map[string]notify.Channel{"slack": chat, "sms": texts, "email": mails}
}

// rulesOfTheChain are the built-in rules of events. Aliyun takes one text a minute for a number: each has its own.
func rulesOfTheChain() (rules []alert.Rule) {
	for _, r := range alert.Builtin() {
		switch r.Name {
		case alert.UserBlocked:
			r.Channels = []string{"slack", "email", "sms"}
		case alert.BreakerOpen:
			r.Channels = []string{"slack", "email", "second sms"}
		default:
			continue
		}
		rules = append(rules, r)
	}
	return rules
}

// orders is a worker whose downstream is away, behind a breaker.
func orders(t *testing.T, b *ferry.Broker, hook guard.Hook) func(context.Context) error {
	t.Helper()
	breaker, err := guard.NewBreaker(guard.BreakerOptions{Name: "billing", Failures: 2, Hook: hook})
	if err != nil {
		t.Fatal(err)
	}
	w := worker.New(b, worker.Options{})
	worker.Handle(w, "orders", func(context.Context, *ferry.Msg[int]) error { return errors.New("connection refused") },
		worker.Use(breaker.Middleware()))
	return w.Run
}

// TestChainToVendors: a breaker opens, and a user goes over its limit until it is blocked: Slack, a mail server and a
// vendor of SMS get both notices, by their own protocols.
func TestChainToVendors(t *testing.T) {
	v := startVendors(t)
	b, err := open.URL(t.Context(), "memory://")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close(context.Background()) }()
	hub, err := notify.New(b, notify.Options{Channels: v.channels(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = hub.Close() }()
	watch, err := alert.New(b, alert.Options{Hub: hub, EventsOnly: true, Rules: rulesOfTheChain(),
		Channels: map[string][]notify.Target{"slack": {{Channel: "slack", To: "ops"}},
			"email": {{Channel: "email", To: "ops@example.com"}}, "sms": {{Channel: "sms", To: "+8613800138000"}},
			"second sms": {{Channel: "sms", To: "+8613800138001"}}}})
	if err != nil {
		t.Fatal(err)
	}
	stop := runtest.Start(t, hub.Run, watch.Run, orders(t, b, watch.GuardHook()))
	defer stop()
	for i := range 2 {
		if _, err := ferry.Publish(t.Context(), b, "orders", i); err != nil {
			t.Fatal(err)
		}
	}
	await(t, func() bool { return v.has("[CRITICAL] UserCircuitBreakerOpen") })

	rule := guard.Rule{Limit: 1, Window: time.Hour, Penalty: guard.Penalty{After: 2}}
	limiter, err := guard.NewLimiter(guard.NewMemory(guard.MemoryOptions{}), guard.LimiterOptions{Hook: watch.GuardHook(),
		Limits: []guard.Limit{{Name: "sender", Rule: rule}}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		_ = limiter.Allow(t.Context(), &ferry.Message{ID: fmt.Sprint("m", i), Topic: "orders", Key: "u1"}) // the hook tells
	}
	await(t, func() bool { return v.has("[CRITICAL] UserBlocked") })
}
