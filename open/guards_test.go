package open_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/gateway"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/open"
)

// block blocks a key of a limit, and blocked demands that it is.
func block(t *testing.T, s guard.Store) {
	t.Helper()
	// without an end
	c := guard.Change{Actor: "ann", Reason: "test", Action: guard.ActionBlock, Limit: "mails", Key: "bob"}
	if err := s.Change(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

func blocked(t *testing.T, s guard.Store) {
	t.Helper()
	if status, err := s.Status(t.Context(), "mails", "bob"); err != nil || status.Block == nil {
		t.Errorf("it is not blocked: %+v, %v", status, err)
	}
}

func guards(t *testing.T, url string) guard.Store {
	t.Helper()
	s, err := open.Guards(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func closeGuards(t *testing.T, s guard.Store) {
	t.Helper()
	if err := s.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// Programs on one Redis share a guard store if they share the prefix, whatever else their URLs say.
func TestGuardsOnRedis(t *testing.T) {
	url := redistest.Shared(t).URL()
	one := guards(t, url+"?prefix=open-guards&shards=4")
	defer closeGuards(t, one)
	block(t, one)
	other := guards(t, strings.Replace(url, "redis", "redisstream", 1)+"?prefix=open-guards&partitions=2&insecure=true")
	defer closeGuards(t, other)
	blocked(t, other)
}

// The guard store of a broker on disk is in its directory, whichever is opened first.
func TestGuardsOnDisk(t *testing.T) {
	for _, first := range []string{"guards", "broker"} {
		url := "disk://" + t.TempDir() + "/broker"
		if first == "guards" {
			s := guards(t, url)
			block(t, s)
			closeGuards(t, s)
		}
		publishes(t, url)
		s := guards(t, url)
		if first == "guards" {
			blocked(t, s)
		}
		b, err := open.URL(t.Context(), url) // both at once
		if err != nil {
			t.Fatal(err)
		}
		closeGuards(t, s)
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// Through a server programs share its guard store.
func TestGuardsOfServer(t *testing.T) {
	b, err := open.URL(t.Context(), "memory://")
	if err != nil {
		t.Fatal(err)
	}
	store := guards(t, "memory://?max_messages=10")
	g, err := gateway.New(b, gateway.Options{Guards: store})
	if err != nil {
		t.Fatal(err)
	}
	who := &auth.Identity{Kind: auth.KindToken, Name: "test", Grants: []auth.Grant{{Role: auth.Operator}}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.ServeHTTP(w, r.WithContext(auth.With(r.Context(), who)))
	}))
	defer func() {
		if err := errors.Join(g.Close(context.Background()), b.Close(context.Background()),
			store.Close(context.Background())); err != nil {
			t.Error(err)
		}
		s.Close()
	}()
	url := strings.Replace(s.URL, "http", "ferry", 1)
	one, other := guards(t, url), guards(t, url)
	block(t, one)
	blocked(t, other)
	closeGuards(t, one)
	closeGuards(t, other)
}

func TestNoGuards(t *testing.T) {
	for url, want := range map[string]error{
		"kafka://localhost:9092":   ferry.ErrUnsupported,
		"memory://?colour=red":     ferry.ErrInvalid,
		"redis://localhost?x=1":    ferry.ErrInvalid,
		"carrier-pigeon://coop":    ferry.ErrInvalid,
		"localhost":                ferry.ErrInvalid,
		"ferry://localhost?x=1":    ferry.ErrInvalid,
		"ferry://127.0.0.1:1":      ferry.ErrNotApplied,
		"disk://relative/is/wrong": ferry.ErrInvalid,
	} {
		if _, err := open.Guards(t.Context(), url); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", url, err, want)
		}
	}
}
