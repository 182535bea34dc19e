// Package gatewayjson is Ferry as a program in any language sees it: a gateway in front of a memory broker, spoken to
// over HTTP/1.1 on this machine. Clients and server share the process, so that a figure has the cost of both.
package gatewayjson

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/bench/system"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/gateway"
)

const topic = "bench"

// System is the gateway, with batches in JSON or in frames.
type System struct{ Frames bool }

// Info describes it.
func (s System) Info() system.Info {
	i := system.Info{
		Name: "ferry gateway, JSON", Version: "this checkout",
		Settings: "gateway.Options{} on a memory broker; singles and arrays of JSON with bodies in base64 over net/http; a " +
			"stream of 1,000 unsettled messages, settled up to 100 at once while the next are read; the client looks for " +
			"lease and body in each line",
		Why: "what a program in another language gets",
	}
	if s.Frames {
		i.Name = "ferry gateway, frames"
		i.Settings = "the same with batches as binary frames"
	}
	return i
}

// Lacks says what is not measured over HTTP.
func (s System) Lacks(f system.Feature) string {
	switch f {
	case system.Backlog, system.Batches, system.Consumes, system.Polls:
		return ""
	case system.Async:
		return "a request is answered"
	case system.Stores, system.Restarts:
		return "messages are on the heap"
	}
	return "it is measured through ferry://"
}

// Open serves an empty broker.
func (s System) Open(ctx context.Context, _ system.Options) (system.Session, error) {
	b, err := memory.Open(ctx, memory.Options{Broker: ferry.Options{Logger: slog.New(slog.DiscardHandler)}})
	if err != nil {
		return nil, err
	}
	g, err := gateway.New(b, gateway.Options{})
	if err != nil {
		return nil, errors.Join(err, b.Close(ctx))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, b.Close(ctx))
	}
	who := &auth.Identity{Kind: auth.KindToken, Name: "bench", Grants: []auth.Grant{{Role: auth.Administrator}}}
	x := &session{frames: s.Frames, broker: b, gateway: g, base: "http://" + l.Addr().String() + "/v1",
		served: make(chan struct{}),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2048, DisableCompression: true}}}
	x.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.ServeHTTP(w, r.WithContext(auth.With(r.Context(), who)))
	})}
	go func() {
		defer close(x.served)
		_ = x.server.Serve(l)
	}()
	return x, nil
}

type session struct {
	frames  bool
	broker  *ferry.Broker
	gateway *gateway.Gateway
	server  *http.Server
	served  chan struct{}
	client  *http.Client
	base    string
}

func (s *session) Publisher() system.Publisher { return &publisher{s: s} }

// post sends a body, and demands a good answer.
func (s *session) post(ctx context.Context, path, contentType string, body io.Reader) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base+path, body)
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", contentType)
	res, err := s.client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return err
	}
	if res.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("%s answered with status %d", path, res.StatusCode)
	}
	return nil
}

// Settled waits until the broker itself says that nothing is left.
func (s *session) Settled(ctx context.Context) error {
	for {
		st, err := s.broker.Driver().Stats(ctx, topic)
		if err != nil {
			return err
		}
		if len(st.Groups) == 1 && st.Groups[0].Acked == st.Published {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not everything is acknowledged (%+v): %w", st, context.Cause(ctx))
		case <-time.After(200 * time.Microsecond):
		}
	}
}

func (s *session) Usage() (system.Usage, error) { return system.Usage{}, nil }

// Poll begins receives that wait, and returns what ends them.
func (s *session) Poll(ctx context.Context, n int) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{}, n)
	for range n {
		go func() {
			defer func() { done <- struct{}{} }()
			_ = s.post(ctx, "/topics/"+topic+"/groups/idle/receive", "application/json", nil) // until it is cancelled
		}()
	}
	return func() {
		cancel()
		for range n {
			<-done
		}
	}, nil
}

func (s *session) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := errors.Join(s.gateway.Close(ctx), s.server.Close())
	<-s.served
	s.client.CloseIdleConnections()
	return errors.Join(err, s.broker.Close(ctx))
}
