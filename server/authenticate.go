package server

import (
	"net/http"
	"strings"

	"github.com/ferrymq/ferry/auth"
)

const (
	// Logins that an address may try: some at once, then one in a while.
	mostLogins      = 20
	loginsPerSecond = 0.2

	// addressShare is how many identities may do as much as they can from one address, a proxy for example.
	addressShare = 10
)

// authenticated finds out who asks, and refuses who does not say so where that is needed.
func (s *Server) authenticated(m Mount, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		noted(r).program = m.Programs
		if !m.Programs && !s.unhurried(w, r, "at "+remote(r), addressShare) {
			return
		}
		who, err := s.identify(r)
		switch {
		case m.Public:
		case err != nil:
			if !m.Programs || s.unhurried(w, r, "at "+remote(r), addressShare) {
				s.refuseError(w, r, err)
			}
			return
		case who == nil:
			w.Header().Set("WWW-Authenticate", "Bearer")
			refuse(w, r, http.StatusUnauthorized, "unauthenticated", "the request has no credentials",
				"log in at /login, or send Authorization: Bearer with a token of 'ferry token create'")
			return
		}
		noted(r).who = who
		r = r.WithContext(auth.With(r.Context(), who))
		if who != nil && !m.Programs && !s.unhurried(w, r, who.String(), 1) || !s.allowed(w, r, m) {
			return
		}
		next.ServeHTTP(w, r)
	})
}

// unhurried reports whether a client has not asked too often; if it has, it is told so.
func (s *Server) unhurried(w http.ResponseWriter, r *http.Request, client string, share float64) bool {
	limit := share * s.limits.Load().Rate
	ok, wait := s.busy.allow(client, limit, max(1, int(2*limit)))
	if !ok {
		tooMany(w, r, wait)
	}
	return ok
}

// allowed reports whether who asks has the scope of a mount; if not they are told so.
func (s *Server) allowed(w http.ResponseWriter, r *http.Request, m Mount) bool {
	if m.Scope == "" || auth.From(r.Context()).May(m.Scope, "") {
		return true
	}
	s.record(r, auth.Action{What: m.Path, Outcome: auth.Denied})
	refuse(w, r, http.StatusForbidden, "forbidden", "this takes the scope "+string(m.Scope)+" on every topic",
		"ask an administrator for a role or a token that has it")
	return false
}

// identify returns who asks: by a token, by the cookie of a session, or nobody. An error says that what was shown is
// not good, or cannot be checked.
func (s *Server) identify(r *http.Request) (*auth.Identity, error) {
	if header := r.Header.Get("Authorization"); header != "" {
		text, _ := strings.CutPrefix(header, "Bearer ")
		return s.known.check(r.Context(), s.tokens, auth.NewSecret(text))
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
