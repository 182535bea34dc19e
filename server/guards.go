package server

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// probes are asked by machines that know no name of the server and have no credentials.
var probes = map[string]bool{"/livez": true, "/readyz": true, "/healthz": true}

// hosted refuses requests for a host that is not the server's: a name that somebody lets point to this machine, so that
// a browser takes their page and this server for the same site.
func (s *Server) hosted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !probes[r.URL.Path] && !s.knows(r.Host) {
			refuse(w, r, http.StatusMisdirectedRequest, "unknown_host", "the server does not go by this name",
				"add the name to hosts in the configuration of the server")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) knows(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
	if _, err := netip.ParseAddr(host); err == nil {
		return true // nobody can let an address point elsewhere
	}
	return host == "localhost" || slices.Contains(s.hosts, host)
}

// hostsOf returns the names of the options, in the form in which they are compared.
func hostsOf(o Options) []string {
	hosts := make([]string, 0, len(o.Hosts)+1)
	for _, h := range o.Hosts {
		hosts = append(hosts, strings.ToLower(h))
	}
	if u, err := url.Parse(o.URL); err == nil && u.Host != "" {
		hosts = append(hosts, strings.ToLower(u.Hostname()))
	}
	return hosts
}

// policy is what a browser may load: what the server has, no script or style within a page but those of the nonce.
func policy(nonce string) string {
	return "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-" + nonce + "'; connect-src 'self'; " +
		"img-src 'self' data:; font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; " +
		"require-trusted-types-for 'script'"
}

// headed sets the headers that browsers need to be told. A handler may change them, static files their Cache-Control.
func (s *Server) headed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy(noted(r).nonce))
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if r.TLS != nil {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		next.ServeHTTP(w, r)
	})
}

// sameSite refuses requests that a page of another site has a browser make.
func sameSite(next http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refuse(w, r, http.StatusForbidden, "cross_origin", "the request comes from a page of another site",
			"make it from the console, or from a program without an Origin header")
	}))
	return protection.Handler(next)
}

// bounded bounds the size of a body and the time it may take.
func (s *Server) bounded(mount Mount, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limits := s.limits.Load()
		most := limits.Body
		if mount.MaxBody > 0 {
			most = mount.MaxBody
		}
		if r.ContentLength > most {
			refuse(w, r, http.StatusRequestEntityTooLarge, "too_large", "the body of the request is too large",
				"send less at once, or raise limits.body of the server")
			return
		}
		if r.ContentLength != 0 {
			r.Body = timed(w, http.MaxBytesReader(w, r.Body, most), limits.Read)
		}
		next.ServeHTTP(w, r)
	})
}

// timedBody is a body that has to come within some time. When it is there the bound ends: it would cut off the handler.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
}

func timed(w http.ResponseWriter, body io.ReadCloser, limit time.Duration) io.ReadCloser {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(limit)) // it can be set for every connection of the server
	return &timedBody{body, control}
}

// Read reads, and ends the bound at the end of the body.
func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// remote returns the address of a client without its port.
func remote(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
