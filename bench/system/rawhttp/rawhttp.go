// Package rawhttp is the limit for anything over HTTP: a handler of net/http that reads the body and puts it into a Go
// channel.
package rawhttp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"sync"

	"github.com/ferrymq/ferry/bench/system"
)

// System is a handler that does nothing else.
type System struct{}

// Info describes it.
func (System) Info() system.Info {
	return system.Info{
		Name: "raw net/http", Version: runtime.Version(),
		Settings: "POST over kept-alive connections on this machine; the handler reads the body, puts it into a channel " +
			"and answers 201; no acknowledgement of handlers",
		Why: "the least a queue behind HTTP must do for a message",
	}
}

// Lacks says what a handler cannot do.
func (System) Lacks(f system.Feature) string {
	switch f {
	case system.Backlog, system.Consumes:
		return ""
	}
	return "a handler has no " + string(f)
}

// Open serves.
func (System) Open(_ context.Context, o system.Options) (system.Session, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &session{queue: make(chan []byte, max(o.Capacity, 1024)), url: "http://" + l.Addr().String(),
		served: make(chan struct{}),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2048, DisableCompression: true}}}
	s.server = &http.Server{Handler: http.HandlerFunc(s.take)}
	go func() {
		defer close(s.served)
		_ = s.server.Serve(l)
	}()
	return s, nil
}

type session struct {
	queue  chan []byte
	server *http.Server
	served chan struct{}
	client *http.Client
	url    string
}

func (s *session) take(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.queue <- body
	w.WriteHeader(http.StatusCreated)
}

func (s *session) Publisher() system.Publisher { return publisher{s} }

func (s *session) Consume(_ context.Context, _ system.ConsumeOptions, h system.Handler) (system.Consumer, error) {
	c := &consumer{stop: make(chan struct{})}
	c.running.Go(func() {
		for {
			select {
			case body := <-s.queue:
				_ = h(body) // the ledger has noted what is wrong
			case <-c.stop:
				return
			}
		}
	})
	return c, nil
}

func (s *session) Settled(context.Context) error { return nil }

func (s *session) Usage() (system.Usage, error) { return system.Usage{}, nil }

func (s *session) Close() error {
	err := s.server.Close()
	<-s.served
	s.client.CloseIdleConnections()
	return err
}

var errLacks = errors.New("a handler of single bodies has neither batches nor promises")

type publisher struct{ s *session }

func (p publisher) KeepsBodies() bool { return false }

func (p publisher) Publish(ctx context.Context, m system.Message) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.s.url, bytes.NewReader(m.Body))
	if err != nil {
		return err
	}
	res, err := p.s.client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	_, err = io.Copy(io.Discard, res.Body)
	return err
}

func (p publisher) PublishBatch(context.Context, []system.Message) error { return errLacks }
func (p publisher) PublishAsync(context.Context, system.Message) error   { return errLacks }
func (p publisher) Flush(context.Context) error                          { return nil }

type consumer struct {
	stop    chan struct{}
	running sync.WaitGroup
}

func (c *consumer) Stop(context.Context) error {
	close(c.stop)
	c.running.Wait()
	return nil
}
