package redisshell_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisshell"
	"github.com/ferrymq/ferry/internal/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// subscription counts how often it is closed, and fails.
type subscription struct{ closed int }

var errLeaving = errors.New("nobody took it back")

func (s *subscription) Close(context.Context) error { s.closed++; return errLeaving }

func TestOptions(t *testing.T) {
	client := goredis.NewClient(&goredis.Options{})
	defer func() { _ = client.Close() }()
	for what, o := range map[string]redisshell.Options{
		"neither":         {},
		"both":            {URL: "redis://localhost", Client: client},
		"prefix":          {Client: client, Prefix: "a b"},
		"long prefix":     {Client: client, Prefix: strings.Repeat("a", 65)},
		"negative body":   {Client: client, MaxBody: -1},
		"negative wakeup": {Client: client, Fallback: -1},
	} {
		if _, err := o.Resolved(); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	o, err := redisshell.Options{Client: client}.Resolved()
	if err != nil || o.Prefix != "ferry" || o.MaxBody != 4<<20 || o.Fallback <= 0 || o.Logger == nil {
		t.Errorf("%+v, %v", o, err)
	}
}

// A shell closes what was opened, ends what runs, and refuses everything from then on; the client of somebody else
// stays open.
func TestClose(t *testing.T) {
	client := goredis.NewClient(&goredis.Options{Addr: redistest.Single(t, redistest.Options{}).Addr()})
	defer func() { _ = client.Close() }()
	o, err := redisshell.Options{Client: client}.Resolved()
	if err != nil {
		t.Fatal(err)
	}
	s, err := redisshell.Open[*subscription](t.Context(), o,
		redisshell.Keys{Registry: "{ferry}:topics", Values: "ferry:kv/"})
	if err != nil {
		t.Fatal(err)
	}
	ended, woken := make(chan struct{}), make(chan struct{})
	s.Go(func(ctx context.Context) { <-ctx.Done(); <-woken; close(ended) })
	open, left := new(subscription), new(subscription)
	for _, sub := range []*subscription{open, left} {
		if err := s.Add(sub, func() {}); err != nil {
			t.Fatal(err)
		}
	}
	s.Remove(left)
	if a, b := s.NewToken(), s.NewToken(); a == b {
		t.Error("two tokens are the same:", a)
	}
	if err := s.Close(t.Context(), func() { close(woken) }); !errors.Is(err, errLeaving) {
		t.Errorf("Close: %v, want what the subscription said", err)
	}
	select {
	case <-ended:
	default:
		t.Error("the background goes on")
	}
	if open.closed != 1 || left.closed != 0 {
		t.Errorf("closed %d and %d times, want 1 and 0", open.closed, left.closed)
	}
	if err := s.Close(t.Context(), func() {}); err != nil || open.closed != 1 {
		t.Errorf("closed again: %v, %d", err, open.closed)
	}
	for what, err := range map[string]error{
		"anything":  s.Refuse(),
		"publish":   s.RefusePublish(t.Context(), driver.PublishOptions{}),
		"subscribe": s.Add(new(subscription), func() { t.Error("a subscription begins after the end") }),
	} {
		if !errors.Is(err, driver.ErrClosed) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Errorf("the client of somebody else: %v", err)
	}
}
