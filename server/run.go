package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Run serves until ctx ends. Then /readyz fails, for Drain; the port is given back, streams end, requests under way
// have StopTimeout, and Run returns.
func (s *Server) Run(ctx context.Context) error {
	if s.began.Swap(true) {
		return driver.NewError(driver.ErrInvalid, "the server runs, or has run", "make a new one with New", nil)
	}
	server := s.httpServer()
	background, stop := context.WithCancel(context.WithoutCancel(ctx)) // a member is seen while it drains
	var all sync.WaitGroup
	all.Go(func() { s.beMember(background) })
	all.Go(func() { s.flushActions(background) })
	all.Go(func() { s.streams.check(background) })
	for _, m := range s.o.Mounts {
		if m.Run != nil {
			all.Go(func() { s.runMount(background, m) })
		}
	}
	served := make(chan error, 1)
	all.Go(func() { served <- s.serve(server) })
	var err error
	select {
	case err = <-served:
	case <-ctx.Done():
		err = s.stop(context.WithoutCancel(ctx), server)
	}
	stop()
	all.Wait()
	return err
}

func (s *Server) httpServer() *http.Server {
	return &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: s.o.Limits.Header,
		WriteTimeout:      s.o.Limits.Write,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(s.o.Logger.Handler(), slog.LevelDebug), // clients that break off
	}
}

// serve answers requests until the server is stopped.
func (s *Server) serve(server *http.Server) error {
	var err error
	if s.certificate != nil {
		server.TLSConfig = s.certificate.config()
		err = server.ServeTLS(s.listener, "", "")
	} else {
		err = server.Serve(s.listener)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// stop ends what stop of Run says, in that order.
func (s *Server) stop(ctx context.Context, server *http.Server) error {
	s.stopping.Store(true)
	drained, cancel := context.WithTimeout(ctx, s.o.Drain)
	<-drained.Done()
	cancel()
	s.streams.stop()
	ctx, cancel = context.WithTimeout(ctx, s.o.StopTimeout)
	defer cancel()
	s.stopMounts(ctx)
	if err := server.Shutdown(ctx); err != nil {
		return driver.NewError(driver.ErrUnknown, "requests were cut off when the server stopped",
			"give them more time with stop_timeout", errors.Join(err, server.Close()))
	}
	return nil
}

// runMount does what a handler needs. The server serves the others all the same if it fails.
func (s *Server) runMount(ctx context.Context, m Mount) {
	if err := m.Run(ctx); err != nil {
		s.o.Logger.ErrorContext(ctx, "a handler does not run", "path", m.Path, "error", err)
	}
}

// stopMounts ends what waits in handlers. The server stops all the same if one of them fails.
func (s *Server) stopMounts(ctx context.Context) {
	for _, m := range s.o.Mounts {
		if m.Stop == nil {
			continue
		}
		if err := m.Stop(ctx); err != nil {
			s.o.Logger.WarnContext(ctx, "a handler did not stop well", "path", m.Path, "error", err)
		}
	}
}

// beMember has the server seen among the members of the broker. It serves without, too.
func (s *Server) beMember(ctx context.Context) {
	if err := s.member.Run(ctx); err != nil {
		s.o.Logger.WarnContext(ctx, "the server is no member of the broker", "error", err)
	}
}

// flushActions records denied calls that were counted, every minute and at the end.
func (s *Server) flushActions(ctx context.Context) {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for ended := false; !ended; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			ended = true
		}
		flushing, cancel := context.WithTimeout(context.WithoutCancel(ctx), healthTimeout)
		if err := s.actions.Flush(flushing, ended); err != nil {
			s.o.Logger.WarnContext(ctx, "denied calls were not recorded", "error", err)
		}
		cancel()
	}
}
