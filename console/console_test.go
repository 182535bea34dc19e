package console

import (
	"compress/gzip"
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

func serve(t *testing.T, method, path string) *httptest.ResponseRecorder {
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
	h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
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

const budget = 200 << 10 // bytes, gzipped, that a browser loads before it shows anything

// TestBudget: what the page names is small, and nothing in it is a script or style within the page.
func TestBudget(t *testing.T) {
	t.Parallel()
	page, err := dist.ReadFile("dist/index.html")
	if err != nil {
		t.Fatal(err)
	}
	if found := regexp.MustCompile(`<style|<script>|https?:| on\w+=`).Find(page); found != nil {
		t.Errorf("the page has %q", found)
	}
	total := 0
	for _, m := range regexp.MustCompile(`(?:src|href)="(/assets/[^"]+)"`).FindAllSubmatch(page, -1) {
		data, err := dist.ReadFile("dist" + string(m[1]))
		if err != nil {
			t.Fatal(err)
		}
		total += zipped(data)
	}
	t.Logf("first load: %d bytes gzipped", total)
	if total == 0 || total > budget {
		t.Errorf("the first load is %d bytes gzipped, more than %d", total, budget)
	}
}

func zipped(data []byte) int {
	var n counter
	z := gzip.NewWriter(&n)
	_, _ = z.Write(data) // a counter takes everything
	_ = z.Close()
	return int(n)
}

type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
