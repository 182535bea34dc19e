// Package framecall calls a gateway in frames over HTTP: what driver/remote and guard/remote have in common.
//
// A call that did not reach the gateway is ErrNotApplied; what one is whose answer was lost its caller says.
package framecall

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/privatefile"
)

// Options of a Client.
type Options struct {
	// URL of the server: ferry://host:7070, or ferrys://host:7070 over TLS.
	URL string
	// Token says who asks. Empty: nobody.
	Token string
	// TokenFile has the token instead, and nobody else may read it. It is read for each call, so that a token can be
	// replaced while the program runs.
	TokenFile string
	// TLS is for ferrys://. Nil: the system's authorities.
	TLS *tls.Config
	// Dial connects to the server. Nil: that of net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// token is what the next call sends.
func (o *Options) token() (string, error) {
	if o.TokenFile == "" {
		return o.Token, nil
	}
	text, err := privatefile.ReadSecret(o.TokenFile)
	var shared *privatefile.Shared
	switch {
	case errors.As(err, &shared):
		return "", driver.NewError(driver.ErrInvalid, "the file with the token is not private: "+shared.Text, shared.Hint,
			nil)
	case err != nil:
		return "", driver.NewError(driver.ErrNotApplied, "the file with the token cannot be read",
			"see that it is there and readable; a new one replaces it by a rename", err)
	}
	return strings.TrimSpace(text), nil
}

const (
	dialTimeout = 10 * time.Second
	idleTimeout = 30 * time.Second
	idleConns   = 64       // a call that waits holds one, over HTTP/1.1
	writeBuffer = 32 << 10 // of a connection: a usual call is sent at once
	defaultPort = "7070"
	calls       = "/v1/driver/"
	firstLimit  = 64 << 10 // of a call before the gateway has said what it takes
)

// Client calls one gateway. It is safe for concurrent use.
type Client struct {
	o     Options
	http  *http.Client
	base  string // URL of the calls
	limit atomic.Int64
	life  context.Context
	end   context.CancelFunc
}

// New returns a client. Nothing is called yet.
func New(o Options) (*Client, error) {
	base, err := baseOf(o.URL)
	if err != nil {
		return nil, err
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	c := &Client{o: o, base: base, http: &http.Client{
		Transport: &http.Transport{
			DialContext: o.Dial, TLSClientConfig: o.TLS, TLSHandshakeTimeout: dialTimeout, ForceAttemptHTTP2: true,
			MaxIdleConnsPerHost: idleConns, IdleConnTimeout: idleTimeout, DisableCompression: true, WriteBufferSize: writeBuffer,
		},
		// the token is for this server alone
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	c.limit.Store(firstLimit)
	c.life, c.end = context.WithCancel(context.Background())
	return c, nil
}

// SetLimit sets the largest call in bytes, as the gateway says.
func (c *Client) SetLimit(n int) { c.limit.Store(int64(n)) }

// Limit is the largest call in bytes.
func (c *Client) Limit() int { return int(c.limit.Load()) }

// Life ends when the client is closed.
func (c *Client) Life() context.Context { return c.life }

// Server is the URL of the server.
func (c *Client) Server() string { return strings.TrimSuffix(c.base, calls) }

// Close ends calls that are under way, and the connections.
func (c *Client) Close() {
	c.end()
	c.http.CloseIdleConnections()
}

// ErrClosed is the error of calls of a client that is closed.
func ErrClosed(cause error) error {
	return driver.NewError(driver.ErrClosed, "the driver is closed", "open it again", cause)
}

// baseOf returns the URL of the calls. Its errors quote nothing of the URL, which may hold a secret.
func baseOf(rawURL string) (string, error) {
	bad := func(why string) error {
		return driver.NewError(driver.ErrInvalid, "the URL of the server "+why,
			"write it as ferry://host:7070, or ferrys://host:7070 over TLS", nil)
	}
	u, err := url.Parse(rawURL)
	if err != nil {
		return "", bad("is malformed")
	}
	scheme, known := map[string]string{"ferry": "http", "ferrys": "https"}[strings.ToLower(u.Scheme)]
	switch {
	case !known:
		return "", bad("has another scheme")
	case u.User != nil:
		return "", bad("has a user or a password, and a server takes a token")
	case u.Hostname() == "":
		return "", bad("names no host")
	case u.RawQuery != "" || u.Fragment != "":
		return "", bad("has parameters")
	}
	host := u.Host
	if u.Port() == "" {
		host = net.JoinHostPort(u.Hostname(), defaultPort)
	}
	return scheme + "://" + host + strings.TrimSuffix(u.Path, "/") + calls, nil
}
