package guard_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/worker"
)

// TestClasses sorts errors by what they are, never by their texts.
// Lesson: L35
func TestClasses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err     error
		class   guard.Class
		decided string // outcome of Classify, "" for none
	}{
		"nil":        {nil, guard.ClassOK, ""},
		"unknown":    {errDown, guard.ClassTransient, "retry"},
		"network":    {fmt.Errorf("dial: %w", syscall.ECONNREFUSED), guard.ClassTransient, "retry"},
		"deadline":   {context.DeadlineExceeded, guard.ClassTransient, "retry"},
		"cancelled":  {fmt.Errorf("call: %w", context.Canceled), guard.ClassCancelled, ""},
		"stopping":   {worker.ErrStopping, guard.ClassCancelled, ""},
		"lease lost": {ferry.ErrLeaseLost, guard.ClassCancelled, ""},
		"json":       {json.Unmarshal([]byte("{"), new(int)), guard.ClassFatal, "dead"},
		"json type":  {json.Unmarshal([]byte(`""`), new(int)), guard.ClassFatal, "dead"},
		"invalid":    {driver.NewError(driver.ErrInvalid, "x", "y", nil), guard.ClassFatal, "dead"},
		"park":       {worker.Park(time.Second), guard.ClassPutOff, "release"},
		"drop":       {worker.Drop(nil), guard.ClassPutOff, "drop"},
		"dead":       {worker.Dead("mine", errDown), guard.ClassFatal, "dead"},
		"transient":  {worker.Transient(errDown), guard.ClassTransient, "retry"},
		"400":        {&guard.StatusError{Status: 400}, guard.ClassFatal, "dead"},
		"408":        {&guard.StatusError{Status: 408}, guard.ClassTransient, "retry"},
		"429":        {&guard.StatusError{Status: 429}, guard.ClassLimited, "retry"},
		"501":        {&guard.StatusError{Status: 501}, guard.ClassFatal, "dead"},
		"599":        {&guard.StatusError{Status: 599}, guard.ClassTransient, "retry"},
	} {
		if got := guard.ClassOf(c.err); got != c.class {
			t.Errorf("%s: class %s, want %s", name, got, c.class)
		}
		classified := guard.Classify(c.err)
		o, ok := worker.Decided(classified)
		if ok != (c.decided != "") || ok && o.String() != c.decided {
			t.Errorf("%s: decided %v %v, want %q", name, ok, o, c.decided)
		}
		if !errors.Is(classified, c.err) {
			t.Errorf("%s: %v hides its cause", name, classified)
		}
	}
}

// TestHTTPAnswers: a handler returns what guard.HTTP makes of an answer.
func TestHTTPAnswers(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var status int
		_, _ = fmt.Sscanf(r.URL.Path, "/%d", &status)
		if after := r.URL.Query().Get("after"); after != "" {
			w.Header().Set("Retry-After", after)
		}
		w.WriteHeader(status)
	}))
	defer server.Close()
	in10min := url.QueryEscape(time.Now().Add(10 * time.Minute).UTC().Format(http.TimeFormat))
	for path, c := range map[string]struct {
		outcome  string // "" for nil
		from, to time.Duration
	}{
		"200":                           {"", 0, 0},
		"404":                           {"dead", 0, 0},
		"503":                           {"retry", 0, 0},
		"429?after=7":                   {"retry", 7 * time.Second, 7 * time.Second},
		"503?after=7":                   {"retry", 7 * time.Second, 7 * time.Second},
		"503?after=99999999999999":      {"retry", 24 * time.Hour, 24 * time.Hour},
		"503?after=-5":                  {"retry", 0, 0},
		"503?after=soon":                {"retry", 0, 0},
		"500?after=7":                   {"retry", 0, 0},
		"429?after=" + in10min:          {"retry", 9 * time.Minute, 10 * time.Minute},
		"503?after=Mon,%2001%20Jan%20x": {"retry", 0, 0},
	} {
		resp, err := http.Get(server.URL + "/" + path) //nolint:noctx // a test
		got := guard.HTTP(resp, err)
		if got == nil {
			_ = resp.Body.Close()
		}
		o, ok := worker.Decided(got)
		if ok != (c.outcome != "") || ok && o.String() != c.outcome {
			t.Errorf("%s: %v", path, got)
		}
		var answer *guard.StatusError
		if got != nil && !errors.As(got, &answer) {
			t.Errorf("%s: %v is not the answer of the server", path, got)
		}
		if answer != nil && (answer.RetryAfter < c.from || answer.RetryAfter > c.to) {
			t.Errorf("%s: retry after %v, want %v to %v", path, answer.RetryAfter, c.from, c.to)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	if o, _ := worker.Decided(guard.HTTP(nil, syscall.ECONNREFUSED)); o != driver.Retry {
		t.Error("a network error is not retried")
	}
	if guard.HTTP(nil, nil) != nil {
		t.Error("nothing is an error")
	}
}

// body notes how much of it was read, and whether it was closed.
type body struct {
	io.Reader
	read   int
	closed bool
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.read += n
	return n, err
}

func (b *body) Close() error { b.closed = true; return nil }

// TestHTTPEndsTheBody of an answer that it turns into an error, since a handler returns then: all of a short one is
// read, so that the connection is used again, and no more than some of an endless one.
func TestHTTPEndsTheBody(t *testing.T) {
	t.Parallel()
	for status, fails := range map[int]bool{200: false, 302: false, 404: true, 429: true, 503: true} {
		short := &body{Reader: strings.NewReader("sorry")}
		err := guard.HTTP(&http.Response{StatusCode: status, Body: short}, nil)
		if (err != nil) != fails || short.closed != fails || fails && short.read != 5 || !fails && short.read != 0 {
			t.Errorf("%d: error %v, closed %v, %d bytes read", status, err, short.closed, short.read)
		}
	}
	endless := &body{Reader: zeroes{}}
	_ = guard.HTTP(&http.Response{StatusCode: 500, Body: endless}, nil)
	if !endless.closed || endless.read > 1<<20 {
		t.Errorf("endless: closed %v, %d bytes read", endless.closed, endless.read)
	}
}

type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) { return len(p), nil }

// TestRetryAfterIsHonoured by the worker, whatever its own policy says.
func TestRetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, ferry.Hooks{})
		var seen journal
		r.work(func(_ context.Context, d *ferry.Delivery) error {
			seen.add("%v", r.elapsed())
			if d.Attempt == 1 {
				return &guard.StatusError{Status: 429, RetryAfter: 42 * time.Second}
			}
			return nil
		}, worker.Options{}, []worker.Middleware{guard.ClassifyErrors})
		r.publish("x")
		r.until(time.Minute)
		equal(t, seen.all(), "0s", "42s")
	})
}
