// Package vendor is what the channels that speak HTTP share: guarded calls, what a status means, and a book of robots.
package vendor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/safehttp"
	"github.com/ferrymq/ferry/notify"
)

// Client calls vendors.
type Client struct{ http *safehttp.Client }

// New returns a client.
func New(h notify.HTTP) *Client {
	return &Client{safehttp.New(safehttp.Options{AllowPrivate: h.AllowPrivate, RootCAs: h.RootCAs})}
}

// Close ends idle connections.
func (c *Client) Close() error { c.http.Close(); return nil }

// CheckURL says what is wrong with an address before anything is sent to it.
func (c *Client) CheckURL(raw string) error {
	_, err := c.http.Check(raw)
	return err
}

// Call is a POST to a vendor.
type Call struct {
	URL    string
	Header http.Header
	Body   []byte
	// Secrets are hidden in errors, should the vendor repeat them.
	Secrets []string
}

// Do makes a call. Anything but a status of 200 to 299 is an error.
func (c *Client) Do(ctx context.Context, call Call) (safehttp.Answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, call.URL, bytes.NewReader(call.Body))
	if err != nil { // its text has the URL
		return safehttp.Answer{}, &notify.Error{Code: notify.CodeInvalidConfig, Text: "the address is no URL",
			Hint: "correct it"}
	}
	if call.Header != nil {
		req.Header = call.Header
	}
	req.Header.Set("User-Agent", "ferry-notify")
	a, err := c.http.Do(req)
	if err != nil {
		return a, unreached(err)
	}
	if a.Status < 200 || a.Status > 299 {
		return a, Refused(a, call.Secrets...)
	}
	return a, nil
}

// JSON encodes what a vendor gets, without the escapes that are for web pages.
func JSON(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, &notify.Error{Code: notify.CodeInvalidMessage, Text: "the notification cannot be encoded",
			Cause: err}
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// JSONHeader is that of a call with JSON.
func JSONHeader() http.Header {
	return http.Header{"Content-Type": {"application/json; charset=utf-8"}}
}

// unreached is the error of a call without an answer.
func unreached(err error) error {
	e := &notify.Error{Code: notify.CodeNetwork, Text: "not sent", Cause: err}
	switch {
	case errors.Is(err, driver.ErrRefused), errors.Is(err, driver.ErrInvalid):
		e.Code = notify.CodeInvalidTarget
	case errors.Is(err, context.DeadlineExceeded):
		e.Code = notify.CodeTimeout
	}
	return e
}

// Refused is what a status means that is no success.
func Refused(a safehttp.Answer, secrets ...string) *notify.Error {
	e := &notify.Error{Text: fmt.Sprintf("status %d: %s", a.Status, Excerpt(a.Body, secrets...)),
		After: retryAfter(a.Header)}
	switch s := a.Status; {
	case s == http.StatusTooManyRequests:
		e.Code = notify.CodeRateLimit
	case s == http.StatusRequestTimeout || s == http.StatusGatewayTimeout:
		e.Code = notify.CodeTimeout
	case s >= 500:
		e.Code = notify.CodeUnavailable
	case s == http.StatusUnauthorized || s == http.StatusForbidden:
		e.Code, e.Hint = notify.CodeAuth, "see whether the secret is right and was not revoked"
	case s == http.StatusNotFound || s == http.StatusGone:
		e.Code, e.Hint = notify.CodeInvalidTarget, "see whether the address still exists"
	case s >= 300 && s < 400:
		e.Code, e.Hint = notify.CodeInvalidTarget, "give the address that it redirects to"
	default:
		e.Code = notify.CodeInvalidMessage
	}
	return e
}

// Excerpt is the begin of an answer for people.
func Excerpt(body []byte, secrets ...string) string {
	const most = 200
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(body), "?")), " ")
	text = safehttp.Hide(text, secrets...)
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}

// longestWait is how long a vendor may have us wait: one that asks for more is misunderstood or wrong.
const longestWait = 24 * time.Hour

// retryAfter reads the header: seconds, or a date.
func retryAfter(h http.Header) time.Duration {
	value := h.Get("Retry-After")
	if value == "" {
		return 0
	}
	if n, err := strconv.Atoi(value); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(max(n, 0), int(longestWait/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(time.Until(at), 0), longestWait)
	}
	return 0
}
