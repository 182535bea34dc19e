// Package console serves the console: the pages with which people see, understand and repair a queue in a browser. They
// are written in TypeScript (src) and built into dist, which is committed, so that Go alone builds and embeds them. The
// pages know nothing but the admin API, and are the same for everybody: who may see what is the matter of the API.
package console

import (
	"bytes"
	"compress/gzip"
	"context"
	"embed"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

//go:embed dist
var dist embed.FS

// noncePlace stands in index.html where the nonce of a request belongs.
const noncePlace = "__NONCE__"

// reserved are the first parts of paths that belong to programs: a typing error there must not be answered with a page.
var reserved = []string{"api", "admin", "v1", "metrics", "assets"}

// handler serves the files of a build.
type handler struct {
	files  fs.FS
	index  []byte
	zipped map[string]func() []byte // by name, those that are worth it
	nonce  func(context.Context) string
}

// Handler serves the console. The function returns the nonce that the policy of a request names (server.Nonce): the
// page hands it to what makes style elements.
func Handler(nonce func(context.Context) string) (http.Handler, error) {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		return nil, err
	}
	return newHandler(files, nonce)
}

func newHandler(files fs.FS, nonce func(context.Context) string) (http.Handler, error) {
	index, err := fs.ReadFile(files, "index.html")
	if err != nil {
		return nil, fmt.Errorf("the console is not built (make console): %w", err)
	}
	zipped, err := zippable(files)
	if err != nil {
		return nil, err
	}
	return &handler{files: files, index: index, zipped: zipped, nonce: nonce}, nil
}

// zippable are the scripts and styles of a build, each compressed when a browser first asks for it.
func zippable(files fs.FS) (map[string]func() []byte, error) {
	names, err := fs.Glob(files, "assets/*.*s") // .js and .css
	if err != nil {
		return nil, err
	}
	all := make(map[string]func() []byte, len(names))
	for _, name := range names {
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		all[name] = sync.OnceValue(func() []byte { return zip(data) })
	}
	return all, nil
}

func zip(data []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(data) // a buffer takes everything
	_ = z.Close()
	return out.Bytes()
}

// ServeHTTP answers with a file of the build, or with the page, whose script knows the path.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the console is only read", http.StatusMethodNotAllowed)
		return
	}
	name := strings.TrimPrefix(path.Clean(r.URL.Path), "/")
	data, err := fs.ReadFile(h.files, name)
	switch {
	case err == nil && name != "index.html":
		h.file(w, r, name, data)
	case isReserved(name):
		http.NotFound(w, r)
	default:
		h.page(w, r)
	}
}

// file answers with a file. Those in assets have a hash of their content in their names, so that browsers may keep
// them. The page has a nonce and is small: it is not compressed.
func (h *handler) file(w http.ResponseWriter, r *http.Request, name string, data []byte) {
	if strings.HasPrefix(name, "assets/") {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	if zipped, ok := h.zipped[name]; ok {
		w.Header().Set("Vary", "Accept-Encoding")
		if takesGzip(r) {
			w.Header().Set("Content-Encoding", "gzip")
			data = zipped()
		}
	}
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(data))
}

// page answers with index.html, which is never kept: the next version has other files.
func (h *handler) page(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	page := bytes.ReplaceAll(h.index, []byte(noncePlace), []byte(h.nonce(r.Context())))
	http.ServeContent(w, r, "index.html", time.Time{}, bytes.NewReader(page))
}

// takesGzip reports whether a browser says so: by name, and not with the weight that refuses it.
func takesGzip(r *http.Request) bool {
	for _, encoding := range strings.Split(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		name, weight, _ := strings.Cut(strings.ReplaceAll(encoding, " ", ""), ";")
		if strings.EqualFold(name, "gzip") {
			return strings.Trim(strings.TrimPrefix(weight, "q="), "0.") != "" || weight == ""
		}
	}
	return false
}

func isReserved(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	return slices.Contains(reserved, first)
}
