package server

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestOtherSites: what a page of another site has a browser do is refused, whatever the browser tells.
func TestOtherSites(t *testing.T) {
	t.Parallel()
	r := start(t, Options{Mounts: []Mount{whoami}})
	cookie := r.onceCookie()
	for _, headers := range [][]string{
		{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"},
		{"Origin", "null"},
		{"Origin", "http://127.0.0.1:1"}, {"Sec-Fetch-Site", "cross-site", "Content-Type", "text/plain"},
	} {
		r.do("POST", "/api/", "x", append(headers, "Cookie", cookie)...).problem(t, 403, "cross_origin")
	}
	for _, headers := range [][]string{{"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Site", "none"},
		{"Origin", r.URL()}, {}} {
		if a := r.do("POST", "/api/", "x", append(headers, "Cookie", cookie)...); a.StatusCode != 200 {
			t.Errorf("%v: %s", headers, a.Status)
		}
	}
	if a := r.do("OPTIONS", "/api/", "", "Origin",
		"https://evil.example"); a.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Error("another site is allowed in")
	}
}

// TestHosts: a name that somebody lets point here is not answered.
func TestHosts(t *testing.T) {
	t.Parallel()
	r := start(t, Options{Mounts: []Mount{whoami}, Hosts: []string{"Ferry.example.com"}, URL: ""})
	token := r.token()
	for host, want := range map[string]int{
		"ferry.example.com": 200, "FERRY.example.com:8443": 200, "ferry.example.com.": 200, "localhost": 200,
		"localhost:7070": 200, "127.0.0.1": 200,
		"[::1]:7070": 200, "10.1.2.3:7070": 200,
		"evil.example": 421, "ferry.example.com.evil.example": 421, "localhost.evil.example": 421,
		"127.0.0.1.evil.example": 421, "x": 421,
	} {
		a := r.do("GET", "/api/", "", "Authorization", token, "Host", host)
		if a.StatusCode != want {
			t.Errorf("%s: %s", host, a.Status)
		}
		if want == 421 {
			a.problem(t, 421, "unknown_host")
		}
		if a := r.do("GET", "/readyz", "", "Host", host); a.StatusCode != 200 {
			t.Errorf("a probe of %s: %s", host, a.Status)
		}
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	page := Mount{Path: "/page", Public: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, Nonce(r.Context()))
	})}
	r := start(t, Options{Mounts: []Mount{page}})
	nonces := map[string]bool{}
	for _, path := range []string{"/page", "/page", "/login", "/nothing", "/livez"} {
		a := r.do("GET", path, "")
		csp := a.Header.Get("Content-Security-Policy")
		for _, must := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'",
			"form-action 'self'", "script-src 'self';", "'nonce-"} {
			if !strings.Contains(csp, must) {
				t.Errorf("%s: the policy %q lacks %s", path, csp, must)
			}
		}
		if strings.Contains(csp, "unsafe") {
			t.Errorf("%s: %q", path, csp)
		}
		_, nonce, _ := strings.Cut(csp, "'nonce-")
		nonce, _, _ = strings.Cut(nonce, "'")
		if nonces[nonce] || len(nonce) < 20 {
			t.Errorf("%s: the nonce %q is not a new one", path, nonce)
		}
		nonces[nonce] = true
		if strings.HasPrefix(path, "/page") && a.text != nonce || path == "/login" &&
			!strings.Contains(a.text, `nonce="`+nonce+`"`) {
			t.Errorf("%s does not know its nonce", path)
		}
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
			"Referrer-Policy": "no-referrer",
			"Cache-Control":   "no-store", "Strict-Transport-Security": "", "Server": "", "X-Powered-By": ""} {
			if got := a.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q", path, name, got)
			}
		}
	}
}

// TestLoginPageEscapes: what a link puts into the page is text.
func TestLoginPageEscapes(t *testing.T) {
	t.Parallel()
	r := start(t, Options{})
	a := r.do("GET", "/login?once=%22%3E%3Cscript%3Ealert(1)%3C/script%3E", "")
	if strings.Contains(a.text, "<script") || !strings.Contains(a.text, "&lt;script") {
		t.Error(a.text)
	}
}

// TestRequestIDs: one that fits a log is taken over, another is not.
func TestRequestIDs(t *testing.T) {
	t.Parallel()
	r := start(t, Options{})
	if a := r.do("GET", "/login", "", "X-Request-Id", "proxy-1.2_3"); a.Header.Get("X-Request-Id") != "proxy-1.2_3" {
		t.Error("an id is not taken over")
	}
	for _, odd := range []string{"", "a b", "a\tb", "<x>", strings.Repeat("a", 65)} {
		if got := r.do("GET", "/login", "", "X-Request-Id", odd).Header.Get("X-Request-Id"); got == odd || got == "" {
			t.Errorf("%q became %q", odd, got)
		}
	}
}

func TestPanic(t *testing.T) {
	t.Parallel()
	r := start(t, Options{Mounts: []Mount{
		{Path: "/panic", Public: true, Handler: http.HandlerFunc(func(http.ResponseWriter,
			*http.Request) {
			panic("Canary7")
		})},
		{Path: "/half", Public: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "half")
			_ = http.NewResponseController(w).Flush()
			panic("Canary7")
		})},
	}})
	a := r.do("GET", "/panic", "")
	a.problem(t, 500, "internal")
	if strings.Contains(a.text, "Canary7") || strings.Contains(a.text, "goroutine") {
		t.Error(a.text)
	}
	res, err := r.http.Get(r.URL() + "/half")
	if err == nil {
		_, err = io.ReadAll(res.Body)
		_ = res.Body.Close()
	}
	if err == nil {
		t.Error("half an answer looks whole")
	}
	if logs := r.logs.String(); !strings.Contains(logs, "Canary7") || !strings.Contains(logs, "goroutine") {
		t.Error("the log does not tell of the panic")
	}
}
