package remote_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/gateway"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/guard/guardtest"
	"github.com/ferrymq/ferry/guard/remote"
	"github.com/ferrymq/ferry/guard/store"
	"github.com/ferrymq/ferry/internal/pipetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is a gateway with a guard store.
type server struct {
	pipes *pipetest.Listener
	stop  func()
}

func serve(t testing.TB, who *auth.Identity, s guard.Store) *server {
	t.Helper()
	b, err := memory.Open(context.Background(),
		memory.Options{Broker: ferry.Options{Logger: slog.New(slog.DiscardHandler)}})
	if err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(b, gateway.Options{Guards: s})
	if err != nil {
		t.Fatal(err)
	}
	x := &server{pipes: pipetest.Listen()}
	h := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.ServeHTTP(w, r.WithContext(auth.With(r.Context(), who)))
	}), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = h.Serve(x.pipes)
	}()
	x.stop = func() {
		err := errors.Join(g.Close(context.Background()), h.Close(), b.Close(context.Background()))
		<-ended
		if s != nil {
			err = errors.Join(err, s.Close(context.Background()))
		}
		if err != nil {
			t.Error(err)
		}
	}
	return x
}

func (x *server) open(t testing.TB) *remote.Store {
	t.Helper()
	s, err := remote.Open(context.Background(), remote.Options{URL: "ferry://test", Dial: x.pipes.Dial})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// token may do some things on topics that fit patterns.
func token(scopes []auth.Scope, topics ...string) *auth.Identity {
	return &auth.Identity{Kind: auth.KindToken, Name: "test", Scopes: scopes,
		Grants: []auth.Grant{{Role: auth.Administrator, Topics: topics}}}
}

// named may do everything.
func named(name string) *auth.Identity {
	who := token(nil)
	who.Name = name
	return who
}

// owned is a store that ends its server with it.
type owned struct {
	*remote.Store
	server *server
}

func (o *owned) Close(ctx context.Context) error {
	defer o.server.stop()
	return o.Store.Close(ctx)
}

// A store behind a server keeps the promises of the one that the server has, for several programs at once; and what one
// of them held is free when its lease is over, although the server's own store lives in one process.
func TestStore(t *testing.T) {
	guardtest.Run(t, guardtest.Harness{
		Virtual: true,
		Leased:  true,
		Open: func(t testing.TB) guard.Store {
			x := serve(t, named("tester"), guard.NewMemory(guard.MemoryOptions{})) // as the changes of the suite say
			return &owned{x.open(t), x}
		},
		Peer: func(t testing.TB, s guard.Store) guard.Store { return s.(*owned).server.open(t) },
	})
}

// Guards are for who consumes every topic, looking and changing for who views and operates; a server without a store
// says so.
func TestWhoMay(t *testing.T) {
	for what, x := range map[string]struct {
		who   *auth.Identity
		store guard.Store
		open  error
		admin error
	}{
		"no store":       {token(nil), nil, ferry.ErrUnsupported, nil},
		"one topic":      {token(nil, "orders"), guard.NewMemory(guard.MemoryOptions{}), ferry.ErrRefused, nil},
		"publishes only": {token([]auth.Scope{auth.Publish}), guard.NewMemory(guard.MemoryOptions{}), ferry.ErrRefused, nil},
		"consumes only":  {token([]auth.Scope{auth.Consume}), guard.NewMemory(guard.MemoryOptions{}), nil, ferry.ErrRefused},
		"everything":     {token(nil), guard.NewMemory(guard.MemoryOptions{}), nil, nil},
	} {
		server := serve(t, x.who, x.store)
		s, err := remote.Open(t.Context(), remote.Options{URL: "ferry://test", Dial: server.pipes.Dial})
		if !errors.Is(err, x.open) {
			t.Errorf("%s: opened with %v, want %v", what, err, x.open)
		}
		if err == nil {
			if _, err := s.Reports(t.Context()); !errors.Is(err, x.admin) {
				t.Errorf("%s: reports with %v, want %v", what, err, x.admin)
			}
			if _, err := s.Take(t.Context(), guardItem()); !errors.Is(err, ferry.ErrInvalid) {
				t.Errorf("%s: an item without a rule: %v", what, err)
			}
			_ = s.Close(t.Context())
		}
		server.stop()
	}
}

// guardItem is what no guard asks: an item without a rule.
func guardItem() store.Take { return store.Take{Items: []store.Item{{Limit: "a", Key: "b"}}} }

// A change is made in the name of who asks, and what no operator can say is refused: the next message would divide by
// its limit.
func TestChanges(t *testing.T) {
	server := serve(t, named("ann"), guard.NewMemory(guard.MemoryOptions{}))
	defer server.stop()
	s := server.open(t)
	defer func() { _ = s.Close(t.Context()) }()
	good := guard.Change{Action: guard.ActionBlock, Limit: "user", Key: "a", Actor: "somebody else", Reason: "spam"}
	if err := s.Change(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	for what, spoil := range map[string]func(c *guard.Change){
		"no reason":                func(c *guard.Change) { c.Reason = "" },
		"a negative time":          func(c *guard.Change) { c.For = -1 },
		"another action":           func(c *guard.Change) { c.Action = "dance" },
		"a rule that is none":      func(c *guard.Change) { c.Action = guard.ActionSetRule },
		"an override without end":  func(c *guard.Change) { c.Action, c.Rule.Unlimited = guard.ActionOverride, true },
		"an override with no rule": func(c *guard.Change) { c.Action, c.For = guard.ActionOverride, time.Hour },
	} {
		c := good
		spoil(&c)
		if err := s.Change(t.Context(), c); !errors.Is(err, ferry.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	all, err := s.Audit(t.Context(), 10)
	if err != nil || len(all) != 1 || all[0].Actor != "token ann" {
		t.Errorf("%+v, %v; want one change, by token ann", all, err)
	}
}
