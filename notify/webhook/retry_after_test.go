package webhook_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/ferrymq/ferry/notify"
	"github.com/ferrymq/ferry/notify/internal/vendortest"
	"github.com/ferrymq/ferry/notify/webhook"
)

// A wait that no number of nanoseconds can hold is the longest one.
func TestRetryAfter(t *testing.T) {
	for header, want := range map[string]time.Duration{
		"7": 7 * time.Second, "-7": 0, "": 0, "soon": 0,
		"31536000": 24 * time.Hour, "99999999999": 24 * time.Hour, "99999999999999999999": 24 * time.Hour,
		"Fri, 31 Dec 9999 23:59:59 GMT": 24 * time.Hour, "Thu, 01 Jan 1970 00:00:00 GMT": 0,
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", header)
			w.WriteHeader(http.StatusServiceUnavailable)
		}))
		t.Cleanup(s.Close)
		c := open(t, webhook.Options{Secret: secret, HTTP: vendortest.Local})
		_, err := c.Send(t.Context(), notify.Rendered{ID: "m", To: s.URL, Body: "b"})
		if e := vendortest.WantCode(t, err, notify.CodeUnavailable); e.After != want {
			t.Errorf("%q: %v", header, e.After)
		}
	}
}
