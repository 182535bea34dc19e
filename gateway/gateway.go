// Package gateway is a broker over HTTP.
//
// A [Gateway] is a handler for what lies below /v1. The whole seam is below /v1/driver, in binary frames: driver/remote
// speaks them, so that a program opens ferry://host:7070 and nothing else changes. The rest is for other languages:
// publish, receive, settle, extend and stream, in JSON.
//
// A gateway holds subscriptions for its clients, and nothing else: what is published, leased and settled is in the
// broker. When a gateway is killed the leases of its clients run out, and the messages are delivered again.
//
// Who asks is [auth.From] of the request's context: whoever serves the gateway finds that out first. Each call needs a
// scope on its topic.
package gateway

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/guard"
	guardremote "github.com/ferrymq/ferry/guard/remote"
	"github.com/ferrymq/ferry/internal/safehttp"
)

// Options of a Gateway. The zero value is a good one.
type Options struct {
	// Poll is how long a call that waits is kept before it is answered with nothing, and asked again: shorter than what
	// proxies on the way allow. Defaults to 20 seconds.
	Poll time.Duration
	// Node names this gateway among several on one broker, in the handles of leases. Defaults to a random name.
	Node string
	// AllowPrivate are private networks to which push subscriptions may post all the same. Defaults to none.
	AllowPrivate []netip.Prefix
	// Guards is the guard store that programs share through this gateway (guard/remote), which stays the caller's.
	// Defaults to none.
	Guards guard.Store
	// Actions records who managed what: purges, moves and resets over frames, push subscriptions. Defaults to none.
	Actions *auth.Actions
	// Masked reports whether parts of the messages of a topic are masked where people look at them: whole ones are then
	// only for who may consume it, and gets them anyway. Defaults to none.
	Masked func(topic string) bool
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
	life     context.Context // ends with Close: nothing waits any more
	end      context.CancelFunc
	leases   leases
	poster   *safehttp.Client
	guards   *guardremote.Server // nil without a store
	calls    map[string]call
	mux      *http.ServeMux
}

// New returns a gateway to a broker, which stays the caller's: close the gateway first.
func New(b *ferry.Broker, o Options) (*Gateway, error) {
	switch {
	case b == nil:
		return nil, driver.NewError(driver.ErrInvalid, "the gateway has no broker", "open one first", nil)
	case o.Poll < 0 || o.MaxFrame < 0:
		return nil, driver.NewError(driver.ErrInvalid, "an option of the gateway is negative",
			"leave it zero for the default", nil)
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
	life, end := context.WithCancel(context.Background())
	g := &Gateway{life: life, end: end, broker: b, driver: b.Driver(), o: o, sessions: newSessions(o.Logger),
		mux: http.NewServeMux()}
	g.leases, g.poster = newLeases(o.Node), newPoster(o)
	if o.Guards != nil {
		g.guards = guardremote.NewServer(o.Guards)
	}
	g.calls = g.frameCalls()
	g.wire()
	return g, nil
}

// ServeHTTP answers a call.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) { g.mux.ServeHTTP(w, r) }

// MaxBody is the largest body of a request in bytes, for whoever bounds it before.
func (g *Gateway) MaxBody() int64 { return int64(g.o.MaxFrame) + 1<<10 }

// Close ends what waits, gives back what clients hold, and refuses subscriptions that come after it. The broker stays
// open.
func (g *Gateway) Close(ctx context.Context) error {
	g.end()
	g.poster.Close()
	if g.guards != nil {
		g.guards.Close()
	}
	return g.sessions.close(ctx)
}

// waiting is a context for a call that waits: it ends with the gateway, and when the client has to be answered.
func (g *Gateway) waiting(ctx context.Context, poll time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, poll)
	unhook := context.AfterFunc(g.life, cancel)
	return ctx, func() { unhook(); cancel() }
}
