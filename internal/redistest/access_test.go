package redistest

import (
	"errors"
	"net/url"
	"strings"
	"testing"
)

func TestTLSAndPassword(t *testing.T) {
	t.Parallel()
	s := Single(t, Options{TLS: true, Password: "se cret\"é"})
	if got := must(t)(s.Command("PING")); got != "PONG" {
		t.Errorf("PING answers %q", got)
	}
	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	if password, _ := u.User.Password(); u.Scheme != "rediss" || password != "se cret\"é" || u.Host != s.Addr() {
		t.Errorf("the URL is %s", s.URL())
	}
	var refused ReplyError
	if _, err := ask(s.Addr(), "", s.TLSConfig(), "PING"); !errors.As(err, &refused) ||
		!strings.HasPrefix(string(refused), "NOAUTH") {
		t.Errorf("without the password: %v", err)
	}
	if _, err := ask(s.Addr(), "", nil, "PING"); err == nil || errors.As(err, &refused) {
		t.Errorf("without TLS: %v", err)
	}
	stranger := s.TLSConfig()
	stranger.RootCAs = nil
	if _, err := ask(s.Addr(), "", stranger, "PING"); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("with the system's authorities: %v", err)
	}
}

func TestClientCertificates(t *testing.T) {
	t.Parallel()
	s := Single(t, Options{TLS: true, ClientCerts: true})
	must(t)(s.Command("PING"))
	anonymous := s.TLSConfig()
	anonymous.Certificates = nil
	if _, err := ask(s.Addr(), "", anonymous, "PING"); err == nil {
		t.Error("a client without a certificate was let in")
	}
	if ca, cert, key := s.TLSFiles(); ca == "" || cert == "" || key == "" {
		t.Error("no files")
	}
}

func TestUsers(t *testing.T) {
	t.Parallel()
	s := Single(t, Options{Password: "top", ACL: []string{"user app on >secret ~app:* +get +set"}})
	must(t)(s.Command("SET", "other", "1")) // the default user may do everything
	if got := must(t)(s.Command("ACL", "DRYRUN", "app", "SET", "app:1", "x")); got != "OK" {
		t.Errorf("its own key: %s", got)
	}
	if got := must(t)(s.Command("ACL", "DRYRUN", "app", "SET", "other", "x")); got == "OK" {
		t.Error("app may write foreign keys")
	}
	if got := s.URLAs("app", "secret"); got != "redis://app:secret@"+s.Addr() {
		t.Errorf("the URL is %s", got)
	}
}
