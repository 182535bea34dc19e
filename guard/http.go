package guard

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// StatusError is an answer of an HTTP server that is no success.
type StatusError struct {
	Status int
	// RetryAfter is when the server wants to be asked again, or zero.
	RetryAfter time.Duration
}

// Error names the status.
func (e *StatusError) Error() string {
	text := http.StatusText(e.Status)
	if text == "" {
		text = "unknown status"
	}
	return fmt.Sprintf("the server answered %d %s", e.Status, text)
}

// Class tells what kind of failure the status is.
func (e *StatusError) Class() Class {
	switch e.Status {
	case http.StatusTooManyRequests:
		return ClassLimited
	case http.StatusRequestTimeout, http.StatusTooEarly:
		return ClassTransient
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return ClassFatal
	}
	if e.Status >= 400 && e.Status < 500 {
		return ClassFatal
	}
	return ClassTransient
}

// maxRetryAfter bounds what a server can ask for.
const maxRetryAfter = day

// maxDrained bounds what is read of a body that nobody wants, so that its connection can be used again.
const maxDrained = 64 << 10

// HTTP turns what an http.Client returned into what a handler should return: nil for 1xx to 3xx; a retry for 408, 425,
// 429 and 5xx but 501 and 505, after the time in Retry-After where the server sent it with 429 or 503; a dead letter
// for the rest.
//
// With an error it has read and closed the body: read what the server says before. With nil the caller closes it.
//
//	resp, err := client.Do(req)
//	if err := guard.HTTP(resp, err); err != nil {
//		return err
//	}
//	defer resp.Body.Close()
func HTTP(resp *http.Response, err error) error {
	if err != nil || resp == nil {
		return Classify(err)
	}
	if resp.StatusCode < 400 {
		return nil
	}
	discard(resp.Body)
	e := &StatusError{Status: resp.StatusCode}
	if e.Status == http.StatusTooManyRequests || e.Status == http.StatusServiceUnavailable {
		e.RetryAfter = parseRetryAfter(resp.Header.Get("Retry-After"), time.Now())
	}
	return Classify(e)
}

// discard ends a body, which may be nil in a response that no client made.
func discard(body io.ReadCloser) {
	if body == nil {
		return
	}
	_, _ = io.CopyN(io.Discard, body, maxDrained) // one that is longer, or breaks, costs its connection
	_ = body.Close()
}

// parseRetryAfter reads seconds or a date.
func parseRetryAfter(text string, now time.Time) time.Duration {
	text = strings.TrimSpace(text)
	var d time.Duration
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
		d = time.Duration(min(seconds, int64(maxRetryAfter/time.Second))) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		d = at.Sub(now)
	}
	return min(max(d, 0), maxRetryAfter)
}
