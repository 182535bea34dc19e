package console

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

func serve(t *testing.T, method, path string) *httptest.ResponseRecorder {
	t.Helper()
	return serveRequest(t, httptest.NewRequest(method, path, nil))
}

func serveRequest(t *testing.T, r *http.Request) *httptest.ResponseRecorder {
	t.Helper()
	files := fstest.MapFS{
		"index.html":      {Data: []byte(`<meta nonce="__NONCE__"><p>page`)},
		"icon.svg":        {Data: []byte("<svg/>")},
		"assets/app-1.js": {Data: []byte("1")},
	}
	h, err := newHandler(files, func(context.Context) string { return "N1" })
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestPaths: what a screen may have as its path is the page; what belongs to programs is not.
func TestPaths(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/", "/topics", "/topics/orders.v1", "/topics/a.js?tab=dead", "/index.html", "/apis"} {
		w := serve(t, "GET", path)
		if w.Code != http.StatusOK || w.Body.String() != `<meta nonce="N1"><p>page` {
			t.Errorf("%s: %d %q", path, w.Code, w.Body)
		}
		if w.Header().Get("Cache-Control") != "no-store" || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
			t.Errorf("%s: %v", path, w.Header())
		}
	}
	for _, path := range []string{"/api", "/api/v1/none", "/v1", "/v1/x", "/metrics", "/metrics/x", "/admin",
		"/assets/old-2.js", "/assets/",
		"/assets/../api"} {
		if w := serve(t, "GET", path); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d %q", path, w.Code, w.Body)
		}
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	w := serve(t, "GET", "/assets/app-1.js")
	if w.Code != http.StatusOK || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") ||
		!strings.HasPrefix(w.Header().Get("Content-Type"), "text/javascript") {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if w := serve(t, "GET", "/icon.svg"); w.Header().Get("Content-Type") != "image/svg+xml" ||
		w.Header().Get("Cache-Control") != "" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if w := serve(t, "HEAD", "/topics"); w.Code != http.StatusOK || w.Body.Len() != 0 {
		t.Errorf("HEAD: %d %q", w.Code, w.Body)
	}
	if w := serve(t, "POST", "/topics"); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
}

func TestNotBuilt(t *testing.T) {
	t.Parallel()
	if _, err := newHandler(fstest.MapFS{}, nil); err == nil || !strings.Contains(err.Error(), "make console") {
		t.Error(err)
	}
}

const budget = 200 << 10 // bytes on the wire that a browser loads before it shows the first screen

// TestBudget: what the page names is small as it is sent, and nothing in it is a script or style within the page. What
// the first screen loads besides is counted by the browser: walk.spec.ts.
func TestBudget(t *testing.T) {
	t.Parallel()
	h, err := Handler(func(context.Context) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	get := func(path string) []byte {
		r := httptest.NewRequest("GET", path, nil)
		r.Header.Set("Accept-Encoding", "gzip, deflate, br")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			t.Fatalf("%s: %d", path, w.Code)
		}
		return w.Body.Bytes()
	}
	page := get("/")
	if found := regexp.MustCompile(`<style|<script>|https?:| on\w+=`).Find(page); found != nil {
		t.Errorf("the page has %q", found)
	}
	named := regexp.MustCompile(`(?:src|href)="(/assets/[^"]+)"`).FindAllSubmatch(page, -1)
	total := len(page)
	for _, m := range named {
		total += len(get(string(m[1])))
	}
	t.Logf("the page and what it names: %d bytes", total)
	if len(named) == 0 || total > budget {
		t.Errorf("the page and what it names are %d bytes, more than %d", total, budget)
	}
}

// TestCompressed: who takes gzip is sent it, and what is unpacked is the file.
func TestCompressed(t *testing.T) {
	t.Parallel()
	for accept, want := range map[string]string{
		"gzip, br": "gzip", "br, GZIP;q=0.5": "gzip", "": "", "br": "", "gzip;q=0": "", "gzip; q=0.0": "",
	} {
		r := httptest.NewRequest("GET", "/assets/app-1.js", nil)
		r.Header.Set("Accept-Encoding", accept)
		w := serveRequest(t, r)
		if got := w.Header().Get("Content-Encoding"); got != want || w.Header().Get("Vary") != "Accept-Encoding" ||
			!strings.HasPrefix(w.Header().Get("Content-Type"), "text/javascript") {
			t.Errorf("%q: %v", accept, w.Header())
		}
		body := io.Reader(w.Body)
		if want == "gzip" {
			z, err := gzip.NewReader(body)
			if err != nil {
				t.Fatal(err)
			}
			body = z
		}
		if data, err := io.ReadAll(body); err != nil || string(data) != "1" {
			t.Errorf("%q: %q %v", accept, data, err)
		}
	}
	if w := serve(t, "GET", "/"); w.Header().Get("Content-Encoding") != "" {
		t.Errorf("the page: %v", w.Header())
	}
}
