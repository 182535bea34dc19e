package server

import (
	"net/http"
	"strings"
	"time"

	"github.com/ferrymq/ferry/auth"
)

// Wrong credentials that an address may show: some at once, then one in a while.
const (
	mostWrong      = 20
	wrongPerSecond = 0.2
)

// authenticated finds out who asks, and refuses who does not say so where that is needed.
func (s *Server) authenticated(m Mount, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, err := s.identify(r)
		if err != nil && !m.Public {
			if ok, wait := s.wrong.allow(remote(r), wrongPerSecond, mostWrong); !ok {
				tooMany(w, r, wait)
				return
			}
			s.refuseError(w, r, err)
			return
		}
		if who == nil && !m.Public {
			w.Header().Set("WWW-Authenticate", "Bearer")
			refuse(w, r, http.StatusUnauthorized, "unauthenticated", "the request has no credentials",
				"log in at /login, or send Authorization: Bearer with a token of 'ferry token create'")
			return
		}
		if ok, wait := s.mayAsk(m, who, r); !ok {
			tooMany(w, r, wait)
			return
		}
		noted(r).who, noted(r).program = who, m.Programs
		next.ServeHTTP(w, r.WithContext(auth.With(r.Context(), who)))
	})
}

// mayAsk reports whether a client may ask once more, and if not, after how long. Who is known and asks as a program has no
// rate: what bounds it is the broker.
func (s *Server) mayAsk(m Mount, who *auth.Identity, r *http.Request) (bool, time.Duration) {
	client := "at " + remote(r)
	if who != nil {
		if m.Programs {
			return true, 0
		}
		client = who.String()
	}
	limit := s.limits.Load().Rate
	return s.busy.allow(client, limit, max(1, int(2*limit)))
}

// identify returns who asks: by a token, by the cookie of a session, or nobody. An error says that what was shown is
// not good, or cannot be checked.
func (s *Server) identify(r *http.Request) (*auth.Identity, error) {
	if header := r.Header.Get("Authorization"); header != "" {
		text, _ := strings.CutPrefix(header, "Bearer ")
		return s.tokens.Check(r.Context(), auth.NewSecret(text))
	}
	if cookie, err := r.Cookie(s.cookieName()); err == nil {
		return s.sessions.Find(r.Context(), auth.NewSecret(cookie.Value))
	}
	return nil, nil
}

// secure reports whether browsers reach the server by TLS.
func (s *Server) secure() bool {
	return s.certificate != nil || strings.HasPrefix(s.o.URL, "https://")
}

// cookieName returns the name of the cookie. Browsers take one with the prefix from this host alone, by TLS alone.
func (s *Server) cookieName() string {
	if s.secure() {
		return "__Host-ferry"
	}
	return "ferry"
}

// setCookie gives a browser the id of its session; an empty one takes it away.
func (s *Server) setCookie(w http.ResponseWriter, id auth.Secret) {
	c := &http.Cookie{Name: s.cookieName(), Value: id.Reveal(), Path: "/", HttpOnly: true, Secure: s.secure(),
		SameSite: http.SameSiteStrictMode}
	if id.Empty() {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}
