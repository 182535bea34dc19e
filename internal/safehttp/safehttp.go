// Package safehttp is the client for calls to addresses that users gave: webhooks, robots, gateways. It connects to no
// private address, whatever a name resolves to at the moment of the call; it follows no redirect to another host; it
// reads bounded answers; and neither its errors nor its texts show the path or the query of a URL, where vendors put
// secrets.
package safehttp

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
	"net/netip"
	"net/url"
	"time"

	"github.com/ferrymq/ferry/driver"
)

const (
	defaultTimeout   = 10 * time.Second
	defaultMaxAnswer = 1 << 20
	maxRedirects     = 3
	// a busy receiver is called by many handlers at once; new connections would cost more than the calls
	idlePerHost = 64
)

// Options of a Client. The zero value is a good one.
type Options struct {
	// AllowPrivate are private networks that may be called all the same: an intranet, or 127.0.0.0/8 in tests. Defaults
	// to none.
	AllowPrivate []netip.Prefix
	// Timeout bounds a whole call, the reading of its answer included. Defaults to 10 seconds.
	Timeout time.Duration
	// MaxAnswer is how many bytes of an answer are read. Defaults to 1 MiB.
	MaxAnswer int64
	// RootCAs verify servers. Defaults to those of the system.
	RootCAs *x509.CertPool
}

// Client makes guarded calls. It is safe for concurrent use.
type Client struct {
	http      *http.Client
	allowed   []netip.Prefix
	maxAnswer int64
}

// Answer is what a server said.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	// Cut says that the body was longer than MaxAnswer, and that the rest was not read.
	Cut bool
}

// New returns a client. Close it to end its idle connections.
func New(o Options) *Client {
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.MaxAnswer <= 0 {
		o.MaxAnswer = defaultMaxAnswer
	}
	c := &Client{allowed: o.AllowPrivate, maxAnswer: o.MaxAnswer}
	dialer := &net.Dialer{Timeout: o.Timeout, ControlContext: c.control}
	c.http = &http.Client{
		Timeout: o.Timeout,
		Transport: &http.Transport{ // no proxy: it would resolve names for us, unguarded
			DialContext:         dialer.DialContext,
			TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.RootCAs},
			TLSHandshakeTimeout: o.Timeout,
			ForceAttemptHTTP2:   true,
			MaxIdleConnsPerHost: idlePerHost,
			IdleConnTimeout:     30 * time.Second,
		},
		CheckRedirect: checkRedirect,
	}
	return c
}

// Close ends idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Do makes a call. The error is an ErrRefused if the address is private or redirects elsewhere, an ErrNotApplied if no
// connection was made, and otherwise an ErrUnknown: the server may have got the request. An answer of any status is no
// error.
func (c *Client) Do(req *http.Request) (Answer, error) {
	if _, err := c.Check(req.URL.String()); err != nil {
		return Answer{}, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return Answer{}, failed(req.URL, err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, c.maxAnswer+1))
	if err != nil {
		return Answer{}, failed(req.URL, err)
	}
	a := Answer{Status: resp.StatusCode, Header: resp.Header, Body: body}
	if int64(len(body)) > c.maxAnswer {
		a.Body, a.Cut = body[:c.maxAnswer], true
	}
	return a, nil
}

// JSON decodes the body into v. One that was cut, or is not JSON, is an ErrInvalid.
func (a Answer) JSON(v any) error {
	if a.Cut {
		return driver.NewError(driver.ErrInvalid, fmt.Sprintf("the answer is longer than %d bytes", len(a.Body)),
			"see whether the address is the right one", nil)
	}
	if err := json.Unmarshal(a.Body, v); err != nil {
		return driver.NewError(driver.ErrInvalid, fmt.Sprintf("the answer with status %d is not JSON", a.Status),
			"see whether the address is the right one", err)
	}
	return nil
}

// Check says what is wrong with a URL before anything is sent to it. A name is judged again by what it resolves to,
// when it is called.
func (c *Client) Check(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil { // its text has the URL
		return nil, driver.NewError(driver.ErrInvalid, "a URL cannot be parsed", "write it as https://host/path", nil)
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, driver.NewError(driver.ErrInvalid, fmt.Sprintf("a URL has scheme %q", u.Scheme),
			"use https, or http", nil)
	case u.Hostname() == "":
		return nil, driver.NewError(driver.ErrInvalid, "a URL has no host", "write it as https://host/path", nil)
	case u.User != nil:
		return nil, driver.NewError(driver.ErrInvalid, "a URL of "+u.Host+" has a user or a password",
			"give credentials as a header or a secret", nil)
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && !c.may(ip) {
		return nil, private(u.Hostname())
	}
	return u, nil
}

// checkRedirect follows redirects within a host only. One that makes a GET of a POST would lose the body.
func checkRedirect(req *http.Request, via []*http.Request) error {
	first, last := via[0], via[len(via)-1]
	switch {
	case len(via) > maxRedirects:
		return refusedRedirect(first.URL, fmt.Sprintf("redirects more than %d times", maxRedirects))
	case req.URL.Host != first.URL.Host || req.URL.Scheme != first.URL.Scheme:
		return refusedRedirect(first.URL, "redirects to another host")
	case req.Method != last.Method:
		return refusedRedirect(first.URL, "answers with a redirect that drops the body")
	}
	return nil
}

func refusedRedirect(u *url.URL, what string) error {
	return driver.NewError(driver.ErrRefused, Redact(u)+" "+what, "give the address that it redirects to", nil)
}

// failed is the error of a call without the URL, which net/http puts into its own.
func failed(u *url.URL, err error) error {
	var ours *driver.Error
	if errors.As(err, &ours) {
		return ours
	}
	var about *url.Error
	if errors.As(err, &about) {
		err = about.Err
	}
	err = quoted{err, Hide(err.Error(), Secrets(u)...)}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return driver.NewError(driver.ErrNotApplied, "no connection to "+Redact(u),
			"see that the host is right and reachable from here", err)
	}
	hint := "it may have got the request: repeat it with the same idempotency key where it takes one"
	if errors.Is(err, context.DeadlineExceeded) || isTimeout(err) {
		return driver.NewError(driver.ErrUnknown, Redact(u)+" did not answer in time", hint, err)
	}
	return driver.NewError(driver.ErrUnknown, "the call to "+Redact(u)+" failed", hint, err)
}

// quoted is an error that may quote the server, which may have repeated what it was sent.
type quoted struct {
	error
	text string // without secrets
}

func (q quoted) Error() string { return q.text }

func (q quoted) Unwrap() error { return q.error }

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}
