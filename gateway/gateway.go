// Package gateway is a broker over HTTP.
//
// A [Gateway] is a handler for what lies below /v1. The whole seam is below /v1/driver, in binary frames: driver/remote speaks
// them, so that a program opens ferry://host:7070 and nothing else changes. The rest is for other languages.
//
// A gateway holds subscriptions for its clients, and nothing else: what is published, leased and settled is in the broker. When a
// gateway is killed the leases of its clients run out, and the messages are delivered again.
//
// Who asks is [auth.From] of the request's context: whoever serves the gateway finds that out first. Each call needs a scope on its topic.
package gateway

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// Options of a Gateway. The zero value is a good one.
type Options struct {
	// Poll is how long a call that waits is kept before it is answered with nothing, and asked again: shorter than what proxies on the
	// way allow. Defaults to 20 seconds.
	Poll time.Duration
	// MaxFrame is the largest call in bytes. Defaults to 32 MiB, or four of the broker's largest bodies.
	MaxFrame int
	// Logger gets what cannot be returned to anybody. Defaults to that of the broker.
	Logger *slog.Logger
}

// Defaults of Options.
const (
	DefaultPoll     = 20 * time.Second
	DefaultMaxFrame = 32 << 20
)

// Gateway answers calls over HTTP. It is safe for concurrent use.
type Gateway struct {
	broker   *ferry.Broker
	driver   driver.Driver
	o        Options
	sessions *sessions
	calls    map[string]call
	mux      *http.ServeMux
}

// New returns a gateway to a broker, which stays the caller's: close the gateway first.
func New(b *ferry.Broker, o Options) (*Gateway, error) {
	switch {
	case b == nil:
		return nil, driver.NewError(driver.ErrInvalid, "the gateway has no broker", "open one first", nil)
	case o.Poll < 0 || o.MaxFrame < 0:
		return nil, driver.NewError(driver.ErrInvalid, "an option of the gateway is negative", "leave it zero for the default", nil)
	}
	if o.Poll == 0 {
		o.Poll = DefaultPoll
	}
	if o.MaxFrame == 0 {
		o.MaxFrame = max(DefaultMaxFrame, 4*b.Driver().Capabilities().MaxBody)
	}
	if o.Logger == nil {
		o.Logger = b.Logger()
	}
	g := &Gateway{broker: b, driver: b.Driver(), o: o, sessions: newSessions(o.Logger), mux: http.NewServeMux()}
	g.calls = g.frameCalls()
	g.mux.HandleFunc("POST /v1/driver/{call}", g.serveFrame)
	return g, nil
}

// ServeHTTP answers a call.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) { g.mux.ServeHTTP(w, r) }

// Close gives back what clients hold, and refuses what comes after it. The broker stays open.
func (g *Gateway) Close(ctx context.Context) error { return g.sessions.close(ctx) }
