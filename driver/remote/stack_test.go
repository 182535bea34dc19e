package remote_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"testing"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/remote"
	"github.com/ferrymq/ferry/gateway"
	"github.com/ferrymq/ferry/internal/pipetest"
)

// node is a gateway behind a listener, as a process that serves it.
type node struct {
	gateway *gateway.Gateway
	server  *http.Server
	served  chan struct{}
	pipes   *pipetest.Listener
}

func serve(t testing.TB, d driver.Driver) *node {
	t.Helper()
	b, err := ferry.New(d, ferry.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(b, gateway.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n := &node{gateway: g, served: make(chan struct{}), pipes: pipetest.Listen()}
	n.server = &http.Server{Handler: as(operator(), g), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	go func() {
		defer close(n.served)
		_ = n.server.Serve(n.pipes)
	}()
	return n
}

// operator may do everything.
func operator() *auth.Identity {
	return &auth.Identity{Kind: auth.KindToken, Name: "test", Grants: []auth.Grant{{Role: auth.Administrator}}}
}

// as serves requests for an identity.
func as(who *auth.Identity, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(auth.With(r.Context(), who)))
	})
}

// stop ends the node in order.
func (n *node) stop(ctx context.Context) error {
	err := n.gateway.Close(ctx)
	return errors.Join(err, n.kill())
}

// kill ends the node without a word to anybody.
func (n *node) kill() error {
	err := n.server.Close()
	<-n.served
	return err
}

// connect opens a remote driver to the node.
func (n *node) connect(t testing.TB) driver.Driver {
	t.Helper()
	d, err := remote.New(context.Background(), remote.Options{URL: "ferry://test", Dial: n.pipes.Dial})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// stack is a remote driver with the gateway and the broker behind it, which are closed with it.
type stack struct {
	driver.Driver
	node    *node
	backend driver.Driver
}

// newStack puts a gateway and a remote driver in front of a broker.
func newStack(t testing.TB, backend driver.Driver) *stack {
	n := serve(t, backend)
	return &stack{Driver: n.connect(t), node: n, backend: backend}
}

// Unwrap lets the suite find the log of the remote driver.
func (s *stack) Unwrap() driver.Driver { return s.Driver }

func (s *stack) Close(ctx context.Context) error {
	err := s.Driver.Close(ctx)
	return errors.Join(err, s.node.stop(ctx), s.backend.Close(ctx))
}
