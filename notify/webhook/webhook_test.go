package webhook_test

import (
	"encoding/base64"
	"errors"
	"net/http"
	"path"
	"strings"
	"testing"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/notify"
	"github.com/ferrymq/ferry/notify/internal/vendortest"
	"github.com/ferrymq/ferry/notify/webhook"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func key(t *testing.T) []byte {
	k, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// The example of the Standard Webhooks libraries.
func TestSign(t *testing.T) {
	got := webhook.Sign(key(t), "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`))
	if got != "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" {
		t.Errorf("got %s", got)
	}
}

func open(t *testing.T, o webhook.Options) *webhook.Channel {
	t.Helper()
	c, err := webhook.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestSend(t *testing.T) {
	v := vendortest.New(t, func(r *http.Request, body []byte) (int, string) {
		want := webhook.Sign(key(t), r.Header.Get("Webhook-Id"), r.Header.Get("Webhook-Timestamp"), body)
		if r.Header.Get("Webhook-Signature") != want {
			return http.StatusUnauthorized, "bad signature"
		}
		return http.StatusNoContent, ""
	})
	c := open(t, webhook.Options{Secret: secret, HTTP: vendortest.Local,
		Endpoints: map[string]notify.Robot{"crm": {URL: v.URL, Secret: secret}}})
	for _, to := range []string{v.URL + "/x?token=1", "crm"} {
		sent, err := c.Send(t.Context(), notify.Rendered{ID: "m/0/0", To: to, Title: "t", Body: "b", Priority: notify.High,
			Metadata: map[string]string{"order": "7"}})
		vendortest.WantCode(t, err, "")
		var p webhook.Payload
		r := v.Last(&p)
		if p.Data.Title != "t" || p.Data.Priority != "high" || p.Data.Metadata["order"] != "7" || sent.ID != "m/0/0" {
			t.Errorf("%+v arrived, %+v", p, sent)
		}
		if r.Header.Get("Webhook-Id") != "m/0/0" {
			t.Errorf("id %q", r.Header.Get("Webhook-Id"))
		}
	}
}

func TestErrors(t *testing.T) {
	for status, want := range map[int]notify.Code{
		400: notify.CodeInvalidMessage, 401: notify.CodeAuth, 404: notify.CodeInvalidTarget, 410: notify.CodeInvalidTarget,
		429: notify.CodeRateLimit, 500: notify.CodeUnavailable, 503: notify.CodeUnavailable, 302: notify.CodeInvalidTarget,
	} {
		v := vendortest.New(t, vendortest.Always(status, ""))
		c := open(t, webhook.Options{Secret: secret, HTTP: vendortest.Local})
		_, err := c.Send(t.Context(), notify.Rendered{ID: "m", To: v.URL + "/" + vendortest.Secret, Body: "b"})
		vendortest.WantCode(t, err, want)
	}
}

// A receiver that repeats pieces of its address tells nobody the key in it.
func TestAnswerRepeatsTheAddress(t *testing.T) {
	pieces := map[string]func(r *http.Request) string{
		"all":   func(r *http.Request) string { return r.RequestURI },
		"path":  func(r *http.Request) string { return r.URL.Path },
		"query": func(r *http.Request) string { return r.URL.RawQuery },
		"value": func(r *http.Request) string { return r.URL.Query().Get("key") },
		"end":   func(r *http.Request) string { return path.Base(r.URL.Path) },
	}
	for name, piece := range pieces {
		v := vendortest.New(t, func(r *http.Request, _ []byte) (int, string) {
			return http.StatusNotFound, "nothing at " + piece(r)
		})
		c := open(t, webhook.Options{Secret: secret, HTTP: vendortest.Local})
		to := v.URL + "/hooks/" + vendortest.Secret + "-long?key=" + vendortest.Secret
		_, err := c.Send(t.Context(), notify.Rendered{ID: "m", To: to, Body: "b"})
		if e := vendortest.WantCode(t, err, notify.CodeInvalidTarget); !strings.Contains(e.Text, "nothing at") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPrivateAddressIsRefused(t *testing.T) {
	c := open(t, webhook.Options{Secret: secret})
	if err := c.Check("http://127.0.0.1/" + vendortest.Secret); !errors.Is(err, ferry.ErrRefused) {
		t.Errorf("got %v", err)
	}
	_, err := c.Send(t.Context(), notify.Rendered{ID: "m", To: "http://localhost:1/" + vendortest.Secret, Body: "b"})
	if e := vendortest.WantCode(t, err, notify.CodeInvalidTarget); e.Retryable() {
		t.Error("it is tried again")
	}
}

func TestWrongOptions(t *testing.T) {
	for name, o := range map[string]webhook.Options{
		"no secret":    {},
		"short secret": {Secret: "whsec_AAAA"},
		"no base64":    {Secret: "whsec_!"},
		"endpoint":     {Endpoints: map[string]notify.Robot{"a": {URL: "https://example.com"}}},
		"address":      {Secret: secret, Endpoints: map[string]notify.Robot{"a": {URL: "ftp://example.com", Secret: secret}}},
	} {
		if _, err := webhook.New(o); !errors.Is(err, ferry.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
