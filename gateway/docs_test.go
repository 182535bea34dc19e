package gateway_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/gateway"
)

// The commands of docs/gateway.md do what the page says, as they stand there.
func TestCommandsOfThePage(t *testing.T) {
	page, err := os.ReadFile("../docs/gateway.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```sh\n(.*?)```").FindSubmatch(page)
	if block == nil {
		t.Fatal("docs/gateway.md has no commands")
	}
	g, b := newGateway(t, gateway.Options{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		g.ServeHTTP(w, r.WithContext(auth.With(r.Context(), token([]auth.Scope{auth.Publish, auth.Consume}))))
	}))
	defer s.Close()
	cmd := exec.Command("bash", "-eu", "-o", "pipefail", "-c", "shopt -s expand_aliases\n"+string(block[1]))
	cmd.Env = append(os.Environ(), "FERRY="+s.URL, "FERRY_TOKEN=secret")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, part := range []string{`"id":"order-1"`, `"id_window":"1m0s"`, `"json":{"id":1}`, `"key":"ann"`,
		`"extended":[{"ok":true}]`, `"settled":[{"ok":true}]`} {
		if !strings.Contains(strings.ReplaceAll(string(out), " ", ""), part) {
			t.Errorf("the commands did not print %s:\n%s", part, out)
		}
	}
	if s, err := b.Driver().Stats(t.Context(), "orders"); err != nil || s.Groups[0].Acked != 1 {
		t.Errorf("afterwards: %+v, %v", s, err)
	}
}
