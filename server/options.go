package server

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/auth/oidc"
	"github.com/ferrymq/ferry/driver"
)

// DefaultAddress is where a server listens if nothing else is said.
const DefaultAddress = "127.0.0.1:7070"

// Mount is a handler and where it answers.
type Mount struct {
	// Path is a path, or all paths that begin with it if it ends with a slash.
	Path    string
	Handler http.Handler
	// Public answers without credentials. It is for what tells nothing, static files for example, and for callbacks
	// that carry a signature of their own.
	Public bool
	// Scope is what whoever asks must be allowed to do, with every topic. Defaults to none: the handler looks itself.
	Scope auth.Scope
	// MaxBody is the most bytes of a body. Defaults to Limits.Body.
	MaxBody int64
	// Programs says that programs ask here, as often as they have work: no rate bounds them, and only what fails is in
	// the log above its debug level.
	Programs bool
	// Run is called when the server begins, and does in the background what the handler needs; its context ends when
	// no request is left. Defaults to nothing.
	Run func(ctx context.Context) error
	// Stop is called when the server stops, before requests under way have their last time: it ends those that wait.
	// Defaults to nothing.
	Stop func(ctx context.Context) error
}

// Limits bound what clients can ask for. Zero stands for the default of each.
type Limits struct {
	// Body is the most bytes of a request's body. Defaults to 8 MiB.
	Body int64
	// Connections is how many are served at once; others wait. Defaults to 4096. A reload does not change it.
	Connections int
	// Header is how long the head of a request may take. Defaults to 5 s. A reload does not change it.
	Header time.Duration
	// Read is how long the body of a request may take. Defaults to 30 s.
	Read time.Duration
	// Write is how long an answer may take. Streams move it on as they go (http.ResponseController). Defaults to 60 s.
	// A reload does not change it.
	Write time.Duration
	// Rate is how many requests a second one identity, or one address without credentials, may make; twice as many at
	// once. Defaults to 200.
	Rate float64
}

func (l Limits) resolved() (Limits, error) {
	if l.Body < 0 || l.Connections < 0 || l.Header < 0 || l.Read < 0 || l.Write < 0 || !(l.Rate >= 0) {
		return l, driver.NewError(driver.ErrInvalid, "a limit of the server is negative",
			"leave it out for the default", nil)
	}
	orDefault(&l.Body, 8<<20)
	orDefault(&l.Connections, 4096)
	orDefault(&l.Header, 5*time.Second)
	orDefault(&l.Read, 30*time.Second)
	orDefault(&l.Write, time.Minute)
	orDefault(&l.Rate, 200)
	return l, nil
}

func orDefault[T comparable](v *T, standard T) {
	var zero T
	if *v == zero {
		*v = standard
	}
}

// Certificate names the files of a certificate and its key, in PEM.
type Certificate struct{ File, Key string }

// Options of a Server.
type Options struct {
	// Broker is what the server is for. Whoever opened it closes it, after Run has returned.
	Broker *ferry.Broker
	// Address is where to listen. Defaults to DefaultAddress. One that others can reach takes users, tokens or OIDC.
	Address string
	// Mounts are what is served.
	Mounts []Mount
	// Hosts are the names under which clients may ask for the server, besides IP addresses and localhost. A name that
	// is not here is refused: a page of somebody else could have it point here.
	Hosts []string
	// URL is where browsers find the server, if that differs from Address: behind a proxy that ends TLS for example.
	// Its host is one of Hosts.
	URL string
	// Home is the path that a login leads to. Defaults to "/".
	Home string
	// Certificate has the server speak TLS. It is read again by Reload. Defaults to none.
	Certificate Certificate
	// OIDC lets people log in with an identity provider, if it names an issuer. Defaults to none.
	OIDC oidc.Options
	// Sessions say how long a login is good.
	Sessions auth.SessionOptions
	// Limits bound what clients can ask for.
	Limits Limits
	// Drain is for how long /readyz fails before the server stops to accept, so that balancers notice. Defaults to 0.
	Drain time.Duration
	// StopTimeout is how long requests under way have when the server stops. Defaults to 10 s.
	StopTimeout time.Duration
	// Problems tells what is wrong with what is mounted, in sentences: /healthz is degraded while there are some. It is
	// asked whenever the broker is looked at. Defaults to none.
	Problems func(ctx context.Context) []string
	// Name is that of the server among the members of the broker. Defaults to host and process id.
	Name string
	// Logger gets a line for each request. Defaults to that of the broker.
	Logger *slog.Logger
}

func (o Options) resolved() (Options, error) {
	if o.Broker == nil {
		return o, driver.NewError(driver.ErrInvalid, "the broker of the server is nil",
			"open one first, with open.URL for example", nil)
	}
	var err error
	if o.Limits, err = o.Limits.resolved(); err != nil {
		return o, err
	}
	orDefault(&o.Address, DefaultAddress)
	orDefault(&o.Home, "/")
	orDefault(&o.StopTimeout, 10*time.Second)
	if o.Logger == nil {
		o.Logger = o.Broker.Logger()
	}
	if o.Drain < 0 || o.StopTimeout < 0 {
		return o, driver.NewError(driver.ErrInvalid, "Drain or StopTimeout is negative", "leave it out for the default",
			nil)
	}
	if (o.Certificate.File == "") != (o.Certificate.Key == "") {
		return o, driver.NewError(driver.ErrInvalid, "the certificate or its key is missing", "name both files", nil)
	}
	return o, o.checkMounts()
}

// own are the paths that the server answers itself.
var own = []string{"/livez", "/readyz", "/healthz", "/login", "/logout", oidcLogin, oidcReturn}

func (o Options) checkMounts() error {
	seen := map[string]bool{}
	for _, path := range own {
		seen[path] = true
	}
	for _, m := range o.Mounts {
		switch {
		case !strings.HasPrefix(m.Path, "/") || strings.ContainsAny(m.Path, "{} ") || m.Handler == nil || m.MaxBody < 0:
			return driver.NewError(driver.ErrInvalid, fmt.Sprintf("the mount at %q is not complete", m.Path),
				"give it a path that begins with a slash, and a handler", nil)
		case seen[m.Path]:
			return driver.NewError(driver.ErrInvalid, fmt.Sprintf("two handlers are mounted at %q", m.Path),
				"give each its own path", nil)
		}
		seen[m.Path] = true
	}
	return nil
}

// loopback reports whether only this machine reaches an address to listen at.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.IsLoopback()
	}
	return strings.EqualFold(host, "localhost")
}
