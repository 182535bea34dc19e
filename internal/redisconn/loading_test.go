package redisconn

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redistest"
)

// A server that loads its append-only file says that it has none. Nobody takes that for what it gives.
func TestSurveyOfALoadingServer(t *testing.T) {
	t.Parallel()
	server := redistest.Single(t, redistest.Options{AOF: "always", Config: redistest.SlowLoading()})
	c, err := Connect(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	var log bytes.Buffer
	before, err := NewSurvey(t.Context(), c, "k", false, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if err := server.RestartLoading(); err != nil {
		t.Fatal(err)
	}

	before.Again(t.Context())
	if err := before.Refuse(t.Context(), driver.Synced); err != nil || log.Len() > 0 {
		t.Errorf("a survey from before: level synced gives %v; it warns %q", err, &log)
	}
	hurried, cancel := context.WithTimeout(t.Context(), 10*loadingPause)
	defer cancel()
	if _, err := NewSurvey(hurried, c, "k", false, slog.Default()); !errors.Is(err, driver.ErrNotApplied) {
		t.Errorf("who does not wait gets %v, want ErrNotApplied", err)
	}
	type survey struct {
		*Survey
		err error
	}
	opened := make(chan survey)
	go func() {
		v, err := NewSurvey(context.WithoutCancel(t.Context()), c, "k", false, slog.Default())
		opened <- survey{v, err}
	}()
	if err := server.FinishLoading(); err != nil {
		t.Fatal(err)
	}
	if v := <-opened; v.err != nil || v.Opened().Level() != driver.Synced {
		t.Errorf("opened while the server was loading: %v; want level synced", v)
	}
}

// A server that has restarted with weaker settings is found out by the first publish with a level after it has loaded
// its data.
func TestSurveyLooksAgainAfterLoading(t *testing.T) {
	t.Parallel()
	server := redistest.Single(t, redistest.Options{AOF: "always", Config: redistest.SlowLoading()})
	c := goredis.NewClient(&goredis.Options{Addr: server.Addr()})
	defer func() { _ = c.Close() }()
	v, err := NewSurvey(t.Context(), c, "k", false, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := server.RestartLoading(); err != nil {
		t.Fatal(err)
	}
	v.Again(t.Context())
	if err := server.FinishLoading(); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Command("CONFIG", "SET", "appendfsync", "everysec"); err != nil {
		t.Fatal(err)
	}
	v.last.Store(time.Now().Add(-2 * resurvey).UnixNano()) // a while after
	if err := v.Refuse(t.Context(), driver.Synced); !errors.Is(err, driver.ErrNotApplied) {
		t.Errorf("level synced of a server that gives written: %v, want ErrNotApplied", err)
	}
}

// Opening changes nothing: a server that takes the connection and never answers is one that was not opened.
func TestSurveyOfASilentServer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	c := goredis.NewClient(&goredis.Options{Addr: l.Addr().String(), ContextTimeoutEnabled: true, MaxRetries: -1})
	defer func() { _ = c.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = NewSurvey(ctx, c, "k", false, slog.New(slog.DiscardHandler))
	if !errors.Is(err, driver.ErrNotApplied) || errors.Is(err, driver.ErrUnknown) {
		t.Errorf("%v, want ErrNotApplied", err)
	}
}
