package gateway

import (
	"net/http"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// The example of Standard Webhooks, which every implementation of it is tested with.
func TestSignatureOfStandardWebhooks(t *testing.T) {
	t.Parallel()
	const (
		secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
		id     = "msg_p5jXN8AQM9LWM0D4loKWxJek"
		body   = `{"test": 2432232314}`
	)
	d := &ferry.Delivery{Message: &driver.Message{ID: id, Topic: "jobs", Body: []byte(body)}, Group: "g", Attempt: 1}
	r, err := signed(t.Context(), pushed{URL: "https://example.com/", Secret: secret}, d, time.Unix(1614265330, 0))
	if err != nil {
		t.Fatal(err)
	}
	const want = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	h := r.Header
	if h.Get("Webhook-Signature") != want || h.Get("Webhook-Id") != id || h.Get("Webhook-Timestamp") != "1614265330" {
		t.Errorf("signed as %v, want %s", h, want)
	}
}

// An endpoint puts a message off for an hour at most, however large its number is.
func TestRetryAfterIsBounded(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"5": 5 * time.Second, "3600": time.Hour, "31536000": time.Hour, "99999999999": time.Hour,
		"9223372036854775807": time.Hour,
		"":                    0, "0": 0, "-5": 0, "soon": 0, "99999999999999999999": 0,
	} {
		if got := putOff(http.Header{"Retry-After": {text}}); got != want {
			t.Errorf("%q puts off for %v, want %v", text, got, want)
		}
	}
}
