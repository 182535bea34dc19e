package server

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"github.com/ferrymq/ferry/auth"
)

// requestIDs are those that are taken over from a client or a proxy: they stand in logs.
var requestIDs = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// request is what the server notes of a request while it is served.
type request struct {
	http.ResponseWriter
	status  int
	bytes   int64
	who     *auth.Identity
	nonce   string
	program bool               // asks as often as it has work
	stream  func(endless bool) // is called when the answer turns out to be a stream
}

type requestKey struct{}

// noted returns what is noted of a request, which every request of the server has.
func noted(r *http.Request) *request {
	n, _ := r.Context().Value(requestKey{}).(*request)
	return n
}

// Nonce returns what a style element of an answer has to carry: the policy that browsers are told names it.
func Nonce(ctx context.Context) string {
	if n, ok := ctx.Value(requestKey{}).(*request); ok {
		return n.nonce
	}
	return ""
}

// WriteHeader notes the status, and whether the answer is a stream.
func (n *request) WriteHeader(status int) {
	if n.status == 0 {
		n.status = status
		switch kind, _, _ := strings.Cut(n.Header().Get("Content-Type"), ";"); kind {
		case "text/event-stream":
			n.stream(true)
		case "application/x-ndjson":
			n.stream(false) // an export ends
		}
	}
	n.ResponseWriter.WriteHeader(status)
}

// Write notes how much is written.
func (n *request) Write(data []byte) (int, error) {
	if n.status == 0 {
		n.WriteHeader(http.StatusOK)
	}
	written, err := n.ResponseWriter.Write(data)
	n.bytes += int64(written)
	return written, err
}

// Unwrap lets http.ResponseController flush and move deadlines.
func (n *request) Unwrap() http.ResponseWriter { return n.ResponseWriter }

// logged gives each request an id and a line in the log, and survives its panic.
func (s *Server) logged(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get("X-Request-Id")
		if !requestIDs.MatchString(id) {
			id = rand.Text()
		}
		ctx, cancel := context.WithCancel(auth.WithRequestID(r.Context(), id))
		defer cancel()
		n := &request{ResponseWriter: w, nonce: rand.Text()}
		n.stream = func(endless bool) {
			s.streams.add(n, stream{endless, cancel, func() (*auth.Identity, error) { return s.identify(r) }})
		}
		defer s.streams.remove(n)
		w.Header().Set("X-Request-Id", id)
		begin := time.Now()
		r = r.WithContext(context.WithValue(ctx, requestKey{}, n))
		defer func() { s.tell(n, r, time.Since(begin)) }()
		defer func() {
			if p := recover(); p != nil {
				s.panicked(n, r, p)
			}
		}()
		next.ServeHTTP(n, r)
	})
}

// panicked answers for a handler that cannot. Its stack is in the log alone.
func (s *Server) panicked(n *request, r *http.Request, p any) {
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		n.status = http.StatusInternalServerError
		panic(p)
	}
	s.o.Logger.ErrorContext(r.Context(), "a handler panicked", "panic", p, "stack", string(debug.Stack()),
		"path", r.URL.Path, "request", auth.RequestID(r.Context()))
	if n.status != 0 {
		panic(http.ErrAbortHandler) // half an answer must not look whole
	}
	refuse(n, r, http.StatusInternalServerError, "internal", "the server made a mistake",
		"the log of the server has more under the id of this request")
}

// tell writes the line of a request. The query is left out: it may hold secrets. So are probes, which say nothing.
func (s *Server) tell(n *request, r *http.Request, took time.Duration) {
	if probes[r.URL.Path] {
		return
	}
	level := slog.LevelInfo
	switch {
	case n.status >= http.StatusInternalServerError:
		level = slog.LevelWarn
	case n.program && n.status < http.StatusBadRequest:
		level = slog.LevelDebug
	}
	s.o.Logger.Log(r.Context(), level, "request", "method", r.Method, "path", r.URL.Path, "status", n.status,
		"bytes", n.bytes, "took", took, "who", n.who.String(), "from", remote(r), "request",
		auth.RequestID(r.Context()))
}
