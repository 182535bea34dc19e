// Package vendortest is a vendor for tests of channels: it notes what it gets and answers as it is told.
package vendortest

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/ferrymq/ferry/notify"
)

// Local lets a channel call a vendor of this package.
var Local = notify.HTTP{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}

// Secret is one for tests; no error may show it.
const Secret = "SEC-very-secret"

// Vendor is a server.
type Vendor struct {
	URL string

	t      *testing.T
	answer func(r *http.Request, body []byte) (status int, answer string)

	mu       sync.Mutex
	requests []*http.Request
	bodies   [][]byte
}

// New starts a vendor.
func New(t *testing.T, answer func(r *http.Request, body []byte) (status int, answer string)) *Vendor {
	v := &Vendor{t: t, answer: answer}
	s := httptest.NewServer(http.HandlerFunc(v.serve))
	t.Cleanup(s.Close)
	v.URL = s.URL
	return v
}

// Always answers the same.
func Always(status int, answer string) func(*http.Request, []byte) (int, string) {
	return func(*http.Request, []byte) (int, string) { return status, answer }
}

func (v *Vendor) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		v.t.Error(err)
	}
	v.mu.Lock()
	v.requests, v.bodies = append(v.requests, r), append(v.bodies, body)
	v.mu.Unlock()
	status, answer := v.answer(r, body)
	w.Header().Set("Connection", "close") // an idle connection would keep virtual time from passing
	if status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "7")
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, answer)
}

// Last decodes the body of the last request into v.
func (v *Vendor) Last(into any) *http.Request {
	v.t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	n := len(v.bodies)
	if n == 0 {
		v.t.Fatal("nothing arrived")
	}
	if err := json.Unmarshal(v.bodies[n-1], into); err != nil {
		v.t.Fatalf("%v: %s", err, v.bodies[n-1])
	}
	return v.requests[n-1]
}

// Count is how many requests arrived.
func (v *Vendor) Count() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.requests)
}

// WantCode fails the test unless err has a code, and shows no secret.
func WantCode(t *testing.T, err error, want notify.Code) notify.Error {
	t.Helper()
	var e *notify.Error
	if want == "" {
		if err != nil {
			t.Errorf("got %v", err)
		}
		return notify.Error{}
	}
	if !errors.As(err, &e) || e.Code != want {
		t.Errorf("got %v, want %s", err, want)
		return notify.Error{}
	}
	if strings.Contains(err.Error(), Secret) || strings.Contains(err.Error(), "access_token") {
		t.Errorf("the error shows a secret: %v", err)
	}
	return *e
}
