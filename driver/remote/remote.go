// Package remote is the driver of a broker behind a gateway: the whole seam over HTTP, in binary frames.
//
// What the broker behind it promises holds here, too: every error arrives as the kind that it is. Beyond that there is
// the way to the gateway. A call that did not reach it is ErrNotApplied; one whose answer was lost is ErrUnknown if it
// changes something. A claim whose answer was lost is brought by the next Receive.
//
// A gateway that was restarted knows no subscriptions: the next Receive subscribes again, and what was held is
// delivered again when its lease is over, as if this process had died; in front of a broker on disk, whose leases end
// with the gateway, at once.
package remote

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/frame"
	"github.com/ferrymq/ferry/internal/framecall"
)

// Options of a Driver.
type Options struct {
	// URL of the server: ferry://host:7070, or ferrys://host:7070 over TLS. Required.
	URL string
	// Token says who asks. Empty: nobody, which few servers accept.
	Token string
	// TokenFile has the token instead, and nobody else may read it. It is read for each call, so that a token can be
	// replaced while the program runs.
	TokenFile string
	// TLS is for ferrys://. Defaults to the system's authorities.
	TLS *tls.Config
	// Dial connects to the server. Defaults to that of net.Dialer, with a timeout of 10 seconds.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Broker are the options of the Broker that Open returns.
	Broker ferry.Options
}

const name = "ferry" // of the driver, and of its scheme

// Driver is a connection to a gateway.
type Driver struct {
	client  *framecall.Client
	caps    driver.Capabilities
	backend string // name of the driver behind the gateway

	mu     sync.Mutex
	subs   map[*subscription]struct{}
	closed bool
}

var _ driver.Driver = (*Driver)(nil)

// New connects to a gateway. The driver has a driver.Log if the broker behind the gateway has one.
func New(ctx context.Context, o Options) (driver.Driver, error) {
	client, err := framecall.New(framecall.Options{URL: o.URL, Token: o.Token, TokenFile: o.TokenFile, TLS: o.TLS,
		Dial: o.Dial})
	if err != nil {
		return nil, err
	}
	d := &Driver{client: client, subs: map[*subscription]struct{}{}}
	var w frame.Welcome
	if err := d.look(ctx, frame.CallHello, &frame.Nothing{}, &w); err != nil {
		client.Close()
		return nil, err
	}
	client.SetLimit(w.MaxFrame)
	d.caps, d.backend = w.Capabilities, w.Capabilities.Driver
	d.caps.Driver, d.caps.Local = name, false
	if w.Log {
		return &logDriver{d}, nil
	}
	return d, nil
}

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
	d.client.Close()
	return first
}

// ended is the error of calls to a closed driver, or nil.
func (d *Driver) ended() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return framecall.ErrClosed(nil)
	}
	return nil
}

// look makes a call that changes nothing: if it fails on its way, nothing was applied.
func (d *Driver) look(ctx context.Context, call string, q, answer frame.Value) error {
	if err := d.ended(); err != nil {
		return err
	}
	return d.client.Call(ctx, call, q, answer, driver.ErrNotApplied)
}

// change makes a call that changes something: if its answer is lost, nobody knows whether it did.
func (d *Driver) change(ctx context.Context, call string, q, answer frame.Value) error {
	if err := d.ended(); err != nil {
		return err
	}
	return d.client.Call(ctx, call, q, answer, driver.ErrUnknown)
}

// Diagnose tells of the way to the gateway, and what the broker behind it says of itself.
func (d *Driver) Diagnose(ctx context.Context) ([]driver.Finding, error) {
	var fs frame.Findings
	if err := d.look(ctx, frame.CallDiagnose, &frame.Nothing{}, &fs); err != nil {
		return nil, err
	}
	way := driver.Finding{Severity: driver.SeverityOK, Subject: "gateway",
		Text: fmt.Sprintf("a %s broker behind %s", d.backend, d.client.Server())}
	return append([]driver.Finding{way}, fs...), nil
}
