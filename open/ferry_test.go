package open_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/gateway"
	"github.com/ferrymq/ferry/open"
)

// tokenServer serves a memory broker to whoever has the token.
func tokenServer(t *testing.T, token string) (url string) {
	t.Helper()
	b, err := open.URL(t.Context(), "memory://")
	if err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(b, gateway.Options{})
	if err != nil {
		t.Fatal(err)
	}
	who := &auth.Identity{Kind: auth.KindToken, Name: "test", Grants: []auth.Grant{{Role: auth.Operator}}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		g.ServeHTTP(w, r.WithContext(auth.With(r.Context(), who)))
	}))
	t.Cleanup(func() {
		if err := errors.Join(g.Close(context.Background()), b.Close(context.Background())); err != nil {
			t.Error(err)
		}
		s.Close()
	})
	return strings.Replace(s.URL, "http", "ferry", 1)
}

func TestServerWithAToken(t *testing.T) {
	url := tokenServer(t, canary)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(canary+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := open.URL(t.Context(), url)
	if !errors.Is(err, ferry.ErrRefused) || !strings.Contains(err.Error(), "FERRY_TOKEN") {
		t.Errorf("without a token: got %v, want ErrRefused and where to put one", err)
	}
	publishes(t, url+"?token_file="+file)
	t.Setenv("FERRY_TOKEN", canary)
	publishes(t, url)
}

// TestTokenIsPrivate: a token that others can read is refused, when the broker is opened and when the file becomes so
// later.
func TestTokenIsPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes do not tell who can read a file")
	}
	url := tokenServer(t, canary)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(canary), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := open.URL(t.Context(), url+"?token_file="+file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close(context.Background()) }()
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := open.URL(t.Context(), url+"?token_file="+file); !errors.Is(err, ferry.ErrInvalid) ||
		!strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("opened with %v, want ErrInvalid and what to do", err)
	}
	if _, err := ferry.Publish(t.Context(), b, "jobs", "x"); !errors.Is(err, ferry.ErrInvalid) ||
		!strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("published with %v, want ErrInvalid and what to do", err)
	}
}

// TestTokenIsReplaced: the file with the token is read for each call, so that another token needs no other broker.
func TestTokenIsReplaced(t *testing.T) {
	url := tokenServer(t, canary)
	file := filepath.Join(t.TempDir(), "token")
	write := func(token string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(canary)
	b, err := open.URL(t.Context(), url+"?token_file="+file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close(context.Background()) }()
	for _, x := range []struct {
		token string
		want  error
	}{{canary, nil}, {"of yesterday", ferry.ErrRefused}, {canary, nil}} {
		write(x.token)
		if _, err := ferry.Publish(t.Context(), b, "orders", 1); !errors.Is(err, x.want) {
			t.Errorf("with token %q: %v", x.token, err)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := ferry.Publish(t.Context(), b, "orders", 1); !errors.Is(err, ferry.ErrNotApplied) ||
		strings.Contains(err.Error(), canary) {
		t.Errorf("without the file: %v", err)
	}
}

// publishes demands that a broker takes a message.
func publishes(t *testing.T, url string) {
	t.Helper()
	b, err := open.URL(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ferry.Publish(t.Context(), b, "orders", 1); err != nil {
		t.Errorf("publish: %v", err)
	}
	if err := b.Close(t.Context()); err != nil {
		t.Errorf("close: %v", err)
	}
}
