package admin

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver/memory"
)

// TestCurlExamples runs the commands of docs/http.md as they are written there.
func TestCurlExamples(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)<!-- test -->\n```console\n(.*?)```").FindStringSubmatch(string(page))
	if block == nil {
		t.Fatal("docs/http.md shows no commands")
	}
	server, token := serveTokens(t)
	for line := range strings.Lines(block[1]) {
		command := strings.TrimPrefix(strings.TrimSpace(line), "$ ")
		c := exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(command, "curl ",
			"curl --fail-with-body --noproxy '*' ", 1))
		c.Env = append(os.Environ(), "FERRY="+server, "TOKEN="+token)
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
	}
}

// serveTokens serves an API that knows its callers by token, on a broker with a topic, and returns a token for
// everything.
func serveTokens(t *testing.T) (url, token string) {
	t.Helper()
	b, err := memory.Open(t.Context(), memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close(context.Background()) })
	if _, err := ferry.Publish(t.Context(), b, topic, "x"); err != nil {
		t.Fatal(err)
	}
	a, err := New(Options{Broker: b, Actions: auth.NewActions(b)})
	if err != nil {
		t.Fatal(err)
	}
	tokens := auth.NewTokens(b)
	_, secret, err := tokens.Create(t.Context(), auth.TokenRequest{Name: "docs", Scopes: auth.Scopes()})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, _ := tokens.Check(r.Context(), auth.NewSecret(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")))
		a.ServeHTTP(w, r.WithContext(auth.With(r.Context(), who)))
	}))
	t.Cleanup(s.Close)
	return s.URL, secret.Reveal()
}
