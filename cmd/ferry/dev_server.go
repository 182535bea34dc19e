package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/admin"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/server"
)

// devServer is the server of ferry dev, and a token for it.
type devServer struct {
	*server.Server
	token auth.Secret
}

// newServer starts to listen, or returns nil if no server is wanted. Where the usual port is taken, by another ferry
// dev for example, it takes a free one.
func (o devOptions) newServer(ctx context.Context, b *ferry.Broker, alerts *demoAlerts) (*devServer, error) {
	if o.listen == "" {
		return nil, nil
	}
	api := admin.Options{Environment: "development", Guards: guard.NewMemory(guard.MemoryOptions{}), Codecs: o.codecs,
		Watch: alerts.watch, NotifyTopic: demoNotices}
	all, err := mounts(b, api, nil)
	if err != nil {
		return nil, err
	}
	options := server.Options{Broker: b, Address: o.listen, Mounts: all, Logger: quiet}
	s, err := server.New(ctx, options)
	if errors.Is(err, ferry.ErrNotApplied) && o.listen == server.DefaultAddress {
		options.Address = "127.0.0.1:0"
		s, err = server.New(ctx, options)
	}
	if err != nil {
		return nil, err
	}
	_, token, err := auth.NewTokens(b).Create(ctx, auth.TokenRequest{Name: "dev", Scopes: auth.Scopes(),
		TTL: 24 * time.Hour})
	return &devServer{s, token}, err
}

// brokerURL returns the URL under which other processes reach the broker through the server.
func (s *devServer) brokerURL() string { return "ferry" + strings.TrimPrefix(s.URL(), "http") }

// run serves beside the demo, until ctx ends; then the returned function waits for its end.
func (s *devServer) run(ctx context.Context) func() error {
	if s == nil {
		return func() error { return nil }
	}
	var ended sync.WaitGroup
	var err error
	ended.Go(func() { err = s.Run(ctx) })
	return func() error { ended.Wait(); return err }
}

// welcome says how to log in, and how programs and other terminals do.
func (s *devServer) welcome(t *terminal) {
	if s == nil {
		return
	}
	ok := t.green("✓")
	t.printf("  %s server   %s   %s\n", ok, s.URL(), t.dim("--no-server to skip"))
	t.printf("  %s console  %s\n", ok, s.LoginURL())
	t.printf("  %s token    %s\n", ok, s.token.Reveal())
}
