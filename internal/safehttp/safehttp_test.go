package safehttp_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/safehttp"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

const secret = "s3cr3t-key"

func newClient(t *testing.T, o safehttp.Options) *safehttp.Client {
	c := safehttp.New(o)
	t.Cleanup(c.Close)
	return c
}

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func post(t *testing.T, c *safehttp.Client, to string) (safehttp.Answer, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to, strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	return c.Do(req)
}

// mustFail checks the kind of an error, and that it tells no secret.
func mustFail(t *testing.T, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("got %v, want %v", err, kind)
	}
	if err != nil && strings.Contains(err.Error(), secret) {
		t.Errorf("the error tells the secret: %v", err)
	}
}

func TestPrivateAddressesAreRefused(t *testing.T) {
	c := newClient(t, safehttp.Options{})
	for _, host := range []string{
		"127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.100.100.200",
		"0.0.0.0", "255.255.255.255", "224.0.0.1",
		"[::1]", "[::]", "[fe80::1]", "[fc00::1]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]",
	} {
		_, err := c.Check("https://" + host + "/" + secret)
		mustFail(t, err, driver.ErrRefused)
	}
	for _, host := range []string{"8.8.8.8", "example.com", "[2606:4700::1111]"} {
		if _, err := c.Check("https://" + host + "/"); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
}

// A name tells nothing: what counts is the address that is dialled.
func TestNameOfPrivateAddressIsRefusedByTheDialer(t *testing.T) {
	s := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the server was reached") })
	at, _ := url.Parse(s.URL)
	c := newClient(t, safehttp.Options{})
	to := "http://localhost:" + at.Port() + "/" + secret
	if _, err := c.Check(to); err != nil {
		t.Fatalf("a name is not judged before it is resolved: %v", err)
	}
	_, err := post(t, c, to)
	mustFail(t, err, driver.ErrRefused)
}

func TestPrivateAddressThatIsAllowed(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(append(body, '!'))
	})
	a, err := post(t, newClient(t, safehttp.Options{AllowPrivate: loopback}), s.URL)
	if err != nil || a.Status != http.StatusOK || string(a.Body) != "body!" || a.Cut {
		t.Errorf("got %+v, %v", a, err)
	}
}

// A server that is none of HTTP, and repeats what it got: the error quotes it, without the key.
func TestErrorThatQuotesTheRequest(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = io.CopyN(c, c, 100)
		_ = c.Close()
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	to := "http://" + l.Addr().String() + "/hook?key=" + secret
	_, err = post(t, newClient(t, safehttp.Options{AllowPrivate: loopback}), to)
	mustFail(t, err, driver.ErrUnknown)
}

func TestRedirects(t *testing.T) {
	other := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the redirect to another host was followed") })
	mux := http.NewServeMux()
	mux.HandleFunc("/end", func(_ http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); r.Method != http.MethodPost || string(body) != "body" {
			t.Errorf("%s with %q arrived", r.Method, body)
		}
	})
	mux.Handle("/same", http.RedirectHandler("/end", http.StatusTemporaryRedirect))
	mux.Handle("/get", http.RedirectHandler("/end", http.StatusFound))
	mux.Handle("/loop", http.RedirectHandler("/loop", http.StatusPermanentRedirect))
	mux.Handle("/other", http.RedirectHandler(other.URL+"/"+secret, http.StatusTemporaryRedirect))
	mux.Handle("/metadata", http.RedirectHandler("http://169.254.169.254/"+secret, http.StatusTemporaryRedirect))
	s := serve(t, mux.ServeHTTP)

	c := newClient(t, safehttp.Options{AllowPrivate: loopback})
	if a, err := post(t, c, s.URL+"/same"); err != nil || a.Status != http.StatusOK {
		t.Errorf("within a host: %+v, %v", a, err)
	}
	for _, path := range []string{"/get", "/loop", "/other", "/metadata"} {
		_, err := post(t, c, s.URL+path+"?key="+secret)
		mustFail(t, err, driver.ErrRefused)
	}
}

func TestAnswersAreBounded(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"a":"` + strings.Repeat("x", 100) + `"}`))
	})
	a, err := post(t, newClient(t, safehttp.Options{AllowPrivate: loopback, MaxAnswer: 50}), s.URL)
	if err != nil || !a.Cut || len(a.Body) != 50 {
		t.Errorf("got %d bytes, cut %v, %v", len(a.Body), a.Cut, err)
	}
	mustFail(t, a.JSON(&struct{}{}), driver.ErrInvalid)

	a, err = post(t, newClient(t, safehttp.Options{AllowPrivate: loopback, MaxAnswer: 108}), s.URL)
	var v struct{ A string }
	if err != nil || a.JSON(&v) != nil || len(v.A) != 100 {
		t.Errorf("got %+v, %v", a, err)
	}
}

func TestErrorsTellWhetherTheServerMayHaveTheRequest(t *testing.T) {
	c := newClient(t, safehttp.Options{AllowPrivate: loopback})
	s := serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	_, err := post(t, c, s.URL+"/"+secret+"?key="+secret)
	mustFail(t, err, driver.ErrUnknown)

	gone := httptest.NewServer(nil)
	gone.Close()
	_, err = post(t, c, gone.URL+"/"+secret)
	mustFail(t, err, driver.ErrNotApplied)
}

func TestWrongURLs(t *testing.T) {
	c := newClient(t, safehttp.Options{})
	for _, raw := range []string{"", "ftp://example.com/" + secret, "https:///" + secret, "https://user:" + secret +
		"@example.com/", "http://a b/" + secret, "%zz" + secret} {
		_, err := c.Check(raw)
		mustFail(t, err, driver.ErrInvalid)
	}
}

func TestRedact(t *testing.T) {
	u, _ := url.Parse("https://hooks.example.com/services/" + secret + "?sign=a%2Bb")
	if got := safehttp.Redact(u); got != "https://hooks.example.com/***" {
		t.Errorf("got %q", got)
	}
	if got := safehttp.Hide("bad key s3cr3t-key, sign a%2Bb+", secret, "a+b+",
		"no"); got != "bad key ***, sign a%2Bb+" {
		t.Errorf("got %q", got)
	}
	if got := safehttp.Hide("sign a%2Bb%2B", "a+b+"); got != "sign ***" {
		t.Errorf("got %q", got)
	}
}
