package server

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/net/netutil"

	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/auth/oidc"
	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/monitor"
)

// Server serves the mounts of its options.
type Server struct {
	o           Options
	hosts       []string
	limits      atomic.Pointer[Limits]
	certificate *certificate // nil without TLS
	listener    net.Listener
	member      *cluster.Member

	users    *auth.Users
	tokens   *auth.Tokens
	sessions *auth.Sessions
	actions  *auth.Actions
	provider *oidc.Provider // nil without OIDC
	once     *once          // nil where others than this machine reach the server
	loginURL string

	busy     throttle // all requests
	logins   throttle
	known    known
	streams  streams
	health   *health
	stopping atomic.Bool
	began    atomic.Bool
}

// New checks the options and listens. Nothing is answered before Run, which also gives the port back.
func New(ctx context.Context, o Options) (*Server, error) {
	o, err := o.resolved()
	if err != nil {
		return nil, err
	}
	s := &Server{o: o, hosts: hostsOf(o), users: auth.NewUsers(o.Broker), tokens: auth.NewTokens(o.Broker),
		sessions: auth.NewSessions(o.Broker, o.Sessions), actions: auth.NewActions(o.Broker)}
	s.limits.Store(&o.Limits)
	if s.certificate, err = newCertificate(o.Certificate); err != nil {
		return nil, err
	}
	if err := s.checkAddress(ctx); err != nil {
		return nil, err
	}
	watch, err := monitor.New(o.Broker, monitor.Options{})
	if err != nil {
		return nil, err
	}
	s.health = &health{monitor: watch, problems: o.Problems, begin: time.Now()}
	if err := s.listen(); err != nil {
		return nil, err
	}
	return s, nil
}

// checkAddress refuses an address that others reach while nobody needs credentials to be somebody.
func (s *Server) checkAddress(ctx context.Context) error {
	if _, _, err := net.SplitHostPort(s.o.Address); err != nil {
		return driver.NewError(driver.ErrInvalid, fmt.Sprintf("%q is no address to listen at", s.o.Address),
			"use host:port, 127.0.0.1:7070 for example", err)
	}
	if loopback(s.o.Address) || s.o.OIDC.Issuer != "" {
		return nil
	}
	users, err := s.users.List(ctx, "", 1)
	if err != nil {
		return err
	}
	tokens, err := s.tokens.List(ctx, "", 1)
	if err != nil {
		return err
	}
	if len(users.Users)+len(tokens.Tokens) > 0 {
		return nil
	}
	return driver.NewError(driver.ErrRefused, fmt.Sprintf("others reach %s, and there are no users, tokens or OIDC",
		s.o.Address),
		"make one first: ferry user set NAME --role admin, or ferry token create NAME; or listen at "+DefaultAddress,
		nil)
}

// listen takes the port, and joins the members of the broker.
func (s *Server) listen() error {
	l, err := net.Listen("tcp", s.o.Address)
	if err != nil {
		return driver.NewError(driver.ErrNotApplied, "cannot listen at "+s.o.Address,
			"is another server running? choose another port with --listen", err)
	}
	s.listener = netutil.LimitListener(l, s.o.Limits.Connections)
	if err := s.introduce(); err != nil {
		_ = l.Close()
		return err
	}
	if loopback(s.o.Address) {
		s.once = newOnce(time.Now())
		s.loginURL = s.URL() + "/login?once=" + url.QueryEscape(s.once.code.Reveal())
	} else if !s.secure() {
		s.o.Logger.Warn("passwords and tokens travel in clear: use a certificate, or a proxy and its https URL",
			"address", s.o.Address)
	}
	return nil
}

// introduce makes the server known to the members of the broker, and to the identity provider.
func (s *Server) introduce() (err error) {
	s.member, err = cluster.Join(s.o.Broker, cluster.Options{Name: s.o.Name, Address: s.URL(),
		Labels: map[string]string{"role": "server"}})
	if err == nil && s.o.OIDC.Issuer != "" {
		s.o.OIDC.ReturnURL = s.URL() + oidcReturn
		s.provider, err = oidc.New(s.o.OIDC)
	}
	return err
}

// URL returns where browsers find the server.
func (s *Server) URL() string {
	switch {
	case s.o.URL != "":
		return strings.TrimSuffix(s.o.URL, "/")
	case s.certificate != nil:
		return "https://" + s.listener.Addr().String()
	}
	return "http://" + s.listener.Addr().String()
}

// LoginURL returns the one-time login: whoever opens it first within a quarter of an hour is an administrator. Empty if
// others than this machine reach the server. It is a secret, for a terminal.
func (s *Server) LoginURL() string { return s.loginURL }

// Reload reads the certificate again, and takes limits over. If it fails, everything stays as it was.
func (s *Server) Reload(l Limits) error {
	l, err := l.resolved()
	if err != nil {
		return err
	}
	if s.certificate != nil {
		if err := s.certificate.read(); err != nil {
			return err
		}
	}
	s.limits.Store(&l)
	return nil
}

// handler puts together what a request passes, from outside in.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	add := func(pattern string, m Mount) {
		mux.Handle(pattern, s.bounded(m, s.authenticated(m, m.Handler)))
	}
	public := func(pattern string, f http.HandlerFunc) { add(pattern, Mount{Handler: f, Public: true}) }
	public("/livez", livez)
	public("/readyz", s.readyz)
	public("/healthz", s.healthz)
	public("GET /login", s.showLogin)
	public("POST /login", s.login)
	public("POST /logout", s.logout)
	if s.provider != nil {
		public("GET "+oidcLogin, s.beginOIDC)
		public("GET "+oidcReturn, s.finishOIDC)
	}
	rooted := false
	for _, m := range s.o.Mounts {
		add(m.Path, m)
		rooted = rooted || m.Path == "/"
	}
	if !rooted { // even that there is nothing is told to nobody
		add("/", Mount{Handler: http.HandlerFunc(nothing)})
	}
	return s.logged(s.headed(s.hosted(sameSite(mux))))
}

func nothing(w http.ResponseWriter, r *http.Request) {
	refuse(w, r, http.StatusNotFound, "not_found", "there is nothing at this path",
		"see /openapi.json for what there is")
}
