// Package remote is the driver of a broker behind a gateway: the whole seam over HTTP, in binary frames.
//
// What the broker behind it promises holds here, too: every error arrives as the kind that it is. Beyond that there is the way to
// the gateway. A call that did not reach it is ErrNotApplied; one whose answer was lost is ErrUnknown if it changes something. A claim whose answer
// was lost is brought by the next Receive.
//
// A gateway that was restarted knows no subscriptions: the next Receive subscribes again, and what was held is delivered again when its
// lease is over, as if this process had died.
package remote

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/frame"
)

// Options of a Driver.
type Options struct {
	// URL of the server: ferry://host:7070, or ferrys://host:7070 over TLS. Required.
	URL string
	// Token says who asks. Empty: nobody, which few servers accept.
	Token string
	// TLS is for ferrys://. Defaults to the system's authorities.
	TLS *tls.Config
	// Dial connects to the server. Defaults to that of net.Dialer, with a timeout of 10 seconds.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Broker are the options of the Broker that Open returns.
	Broker ferry.Options
}

const (
	name        = "ferry" // of the driver, and of its scheme
	dialTimeout = 10 * time.Second
	idleTimeout = 30 * time.Second
	idleConns   = 64 // a call that waits holds one, over HTTP/1.1
	defaultPort = "7070"
)

// Driver is a connection to a gateway.
type Driver struct {
	http     *http.Client
	base     string // URL of the calls
	token    string
	caps     driver.Capabilities
	backend  string // name of the driver behind the gateway
	maxFrame int

	life context.Context // ends when the driver is closed
	end  context.CancelFunc

	mu     sync.Mutex
	subs   map[*subscription]struct{}
	closed bool
}

var _ driver.Driver = (*Driver)(nil)

// New connects to a gateway. The driver has a driver.Log if the broker behind the gateway has one.
func New(ctx context.Context, o Options) (driver.Driver, error) {
	base, err := baseOf(o.URL)
	if err != nil {
		return nil, err
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	life, end := context.WithCancel(context.Background())
	d := &Driver{
		http: &http.Client{
			Transport: &http.Transport{
				DialContext: o.Dial, TLSClientConfig: o.TLS, TLSHandshakeTimeout: dialTimeout, ForceAttemptHTTP2: true,
				MaxIdleConnsPerHost: idleConns, IdleConnTimeout: idleTimeout, DisableCompression: true,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the token is for this server alone
		},
		base: base, token: o.Token, maxFrame: helloFrame, life: life, end: end, subs: map[*subscription]struct{}{},
	}
	var w frame.Welcome
	if err := d.look(ctx, frame.CallHello, &frame.Nothing{}, &w); err != nil {
		end()
		d.http.CloseIdleConnections()
		return nil, err
	}
	d.caps, d.backend, d.maxFrame = w.Capabilities, w.Capabilities.Driver, w.MaxFrame
	d.caps.Driver, d.caps.Local = name, false
	if w.Log {
		return &logDriver{d}, nil
	}
	return d, nil
}

// helloFrame is the largest call before the gateway has said what it takes.
const helloFrame = 1 << 10

// Open connects to a gateway, and returns a Broker on it.
func Open(ctx context.Context, o Options) (*ferry.Broker, error) {
	d, err := New(ctx, o)
	if err != nil {
		return nil, err
	}
	b, err := ferry.New(d, o.Broker)
	if err != nil {
		_ = d.Close(ctx)
		return nil, err
	}
	return b, nil
}

// baseOf returns the URL of the calls. Its errors quote nothing of the URL, which may hold a secret.
func baseOf(rawURL string) (string, error) {
	bad := func(why string) error {
		return driver.NewError(driver.ErrInvalid, "the URL of the server "+why, "write it as ferry://host:7070, or ferrys://host:7070 over TLS", nil)
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
	return scheme + "://" + host + strings.TrimSuffix(u.Path, "/") + "/v1/driver/", nil
}

// Capabilities are those of the broker behind the gateway.
func (d *Driver) Capabilities() driver.Capabilities { return d.caps }

// Close ends every subscription, and then the connections.
func (d *Driver) Close(ctx context.Context) error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	subs := d.subs
	d.subs = nil
	d.mu.Unlock()
	var first error
	for s := range subs {
		if err := s.Close(ctx); err != nil && first == nil {
			first = err
		}
	}
	d.end()
	d.http.CloseIdleConnections()
	return first
}

// ended is the error of calls to a closed driver, or nil.
func (d *Driver) ended() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return errClosed(nil)
	}
	return nil
}

func errClosed(cause error) error {
	return driver.NewError(driver.ErrClosed, "the driver is closed", "open it again", cause)
}

// Diagnose tells of the way to the gateway, and what the broker behind it says of itself.
func (d *Driver) Diagnose(ctx context.Context) ([]driver.Finding, error) {
	var fs frame.Findings
	if err := d.look(ctx, frame.CallDiagnose, &frame.Nothing{}, &fs); err != nil {
		return nil, err
	}
	way := driver.Finding{Severity: driver.SeverityOK, Subject: "gateway", Text: fmt.Sprintf("a %s broker behind %s", d.backend, strings.TrimSuffix(d.base, "/v1/driver/"))}
	return append([]driver.Finding{way}, fs...), nil
}
