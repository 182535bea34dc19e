package server

import (
	"errors"
	"html/template"
	"net/http"
	"time"

	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/auth/oidc"
	"github.com/ferrymq/ferry/driver"
)

const (
	oidcLogin  = "/oidc/login"
	oidcReturn = "/oidc/return"
	oidcFor    = 10 * time.Minute // that somebody has to log in with the provider
)

// flowCookie is what a browser remembers of a login with the provider. It has to come along when the provider, another
// site, sends the browser back: so it is Lax, and good for nothing else.
func (s *Server) flowCookie(value string) *http.Cookie {
	c := &http.Cookie{Name: s.cookieName() + "-oidc", Value: value, Path: "/", HttpOnly: true, Secure: s.secure(),
		SameSite: http.SameSiteLaxMode, MaxAge: int(oidcFor.Seconds())}
	if value == "" {
		c.MaxAge = -1
	}
	return c
}

// beginOIDC sends a browser to the provider.
func (s *Server) beginOIDC(w http.ResponseWriter, r *http.Request) {
	to, flow, err := s.provider.Begin(r.Context())
	if err != nil {
		s.oidcFailed(w, r, err)
		return
	}
	http.SetCookie(w, s.flowCookie(flow.String()))
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// enter leads on after a login with the provider. A redirect would not do: the browser comes from another site, and
// does not show the cookie of the session until a page of ours asks for the next one.
var enter = template.Must(template.New("enter").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Ferry</title>
<meta http-equiv="refresh" content="0; url={{.}}"></head>
<body><a href="{{.}}">Ferry 摆渡</a></body></html>
`))

// finishOIDC begins the session of somebody who comes back from the provider.
func (s *Server) finishOIDC(w http.ResponseWriter, r *http.Request) {
	var flow oidc.Flow
	cookie, err := r.Cookie(s.cookieName() + "-oidc")
	if err == nil {
		flow, _ = oidc.ParseFlow(cookie.Value)
	}
	if flow == (oidc.Flow{}) {
		s.oidcFailed(w, r, driver.NewError(driver.ErrRefused, "the login was not begun in this browser",
			"log in again at /login", nil))
		return
	}
	q := r.URL.Query()
	who, err := s.provider.Finish(r.Context(), flow, q.Get("state"), q.Get("code"))
	if err == nil {
		err = s.begin(w, r, who)
	}
	if err != nil {
		s.oidcFailed(w, r, err)
		return
	}
	http.SetCookie(w, s.flowCookie(""))
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = enter.Execute(w, s.o.Home) // who has gone is not told
}

// oidcFailed answers for a login with the provider that came to nothing.
func (s *Server) oidcFailed(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, driver.ErrRefused) {
		s.record(r, auth.Action{Who: "nobody", What: "login", Outcome: auth.Denied,
			Detail: "by OIDC, from " + remote(r)})
	}
	s.refuseError(w, r, err)
}
