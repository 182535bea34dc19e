package server

import (
	"encoding/json"
	"errors"
	"html/template"
	"mime"
	"net/http"
	"time"

	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver"
)

// credentials are what somebody logs in with.
type credentials struct {
	Name     string `json:"name"`
	Password string `json:"password"`
	Once     string `json:"once"`
}

// maxLogin is the most bytes of a login.
const maxLogin = 16 << 10

// loginPage is shown to people. It has no script: a form is all it needs.
var loginPage = template.Must(template.New("login").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Ferry · log in</title>
<style nonce="{{.Nonce}}">
body{font:16px/1.5 system-ui,sans-serif;margin:15vh auto;max-width:20rem;padding:0 1rem}
label,input,button{display:block;width:100%;box-sizing:border-box;font:inherit}
input,button{padding:.5rem;margin:.25rem 0 1rem}
</style></head><body><main><h1>Ferry 摆渡</h1>
{{if .Wrong}}<p role="alert">{{.Wrong}}</p>{{end}}
<form method="post" action="/login">
{{if .Once}}<input type="hidden" name="once" value="{{.Once}}">
<button autofocus>Log in · 登录</button>
{{else}}<label for="name">Name · 用户名</label><input id="name" name="name" autocomplete="username" required autofocus>
<label for="password">Password · 密码</label>
<input id="password" name="password" type="password" autocomplete="current-password" required>
<button>Log in · 登录</button>{{end}}
</form>{{if .OIDC}}<p><a href="{{.OIDC}}">Log in with your organisation · 单点登录</a></p>{{end}}</main></body></html>
`))

// showLogin answers with the page. A code of the one-time login is only put into its form: to open a link must not use
// it up, as programs that preview links do.
func (s *Server) showLogin(w http.ResponseWriter, r *http.Request) {
	s.page(w, r, http.StatusOK, r.URL.Query().Get("once"), "")
}

func (s *Server) page(w http.ResponseWriter, r *http.Request, status int, once, wrong string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	view := struct{ Nonce, Once, Wrong, OIDC string }{Nonce: Nonce(r.Context()), Once: once, Wrong: wrong}
	if s.provider != nil {
		view.OIDC = oidcLogin
	}
	_ = loginPage.Execute(w, view) // who has gone is not told
}

// login begins a session. Forms are answered with a page, JSON with nothing but the cookie.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	c, form, ok := readLogin(w, r)
	if !ok {
		refuse(w, r, http.StatusBadRequest, "invalid", "the login cannot be read",
			`send a form, or JSON like {"name": "ann", "password": "..."}`)
		return
	}
	if ok, wait := s.logins.allow(remote(r), loginsPerSecond, mostLogins); !ok {
		s.denied(r, c, "too many tries")
		tooMany(w, r, wait)
		return
	}
	who, err := s.check(r, c)
	if err == nil {
		err = s.begin(w, r, who)
	}
	switch {
	case err == nil && form:
		http.Redirect(w, r, s.o.Home, http.StatusSeeOther)
	case err == nil:
		w.WriteHeader(http.StatusNoContent)
	case errors.Is(err, driver.ErrRefused) && form:
		s.denied(r, c, "")
		s.page(w, r, http.StatusUnauthorized, "", "That is not right. 用户名或密码不对。")
	default:
		s.denied(r, c, "")
		s.refuseError(w, r, err)
	}
}

// readLogin reads a form or JSON.
func readLogin(w http.ResponseWriter, r *http.Request) (c credentials, form, ok bool) {
	r.Body = http.MaxBytesReader(w, r.Body, maxLogin)
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case err != nil:
		return c, false, false
	case kind == "application/json":
		d := json.NewDecoder(r.Body)
		d.DisallowUnknownFields()
		return c, false, d.Decode(&c) == nil
	case kind == "application/x-www-form-urlencoded":
		if r.ParseForm() != nil {
			return c, true, false
		}
		f := r.PostForm
		return credentials{f.Get("name"), f.Get("password"), f.Get("once")}, true, true
	}
	return c, false, false
}

// check returns who logs in.
func (s *Server) check(r *http.Request, c credentials) (*auth.Identity, error) {
	if c.Once == "" {
		return s.users.Login(r.Context(), c.Name, auth.NewSecret(c.Password))
	}
	if !s.once.use(c.Once, time.Now()) {
		return nil, driver.NewError(driver.ErrRefused, "the one-time login was used, or its time is over",
			"start the server again for another, or make a user: ferry user set NAME --role admin", nil)
	}
	return local(), nil
}

// begin starts a session under a new id, and ends the one before it. A login that cannot be recorded is none.
func (s *Server) begin(w http.ResponseWriter, r *http.Request, who *auth.Identity) error {
	id, err := s.sessions.Start(r.Context(), who)
	if err != nil {
		return err
	}
	a := auth.Action{What: "login", Detail: "from " + remote(r)}
	if err := s.actions.Record(auth.With(r.Context(), who), a); err != nil {
		return err
	}
	s.endSession(r)
	s.setCookie(w, id)
	noted(r).who = who
	return nil
}

// denied records that a login was refused. The name is not taken for true.
func (s *Server) denied(r *http.Request, c credentials, why string) {
	a := auth.Action{Who: "nobody", What: "login", Outcome: auth.Denied, Detail: "from " + remote(r)}
	if c.Name != "" {
		a.Detail += ", as " + c.Name
	}
	if why != "" {
		a.Detail += ", " + why
	}
	s.record(r, a)
}

// record records an action that has happened already: if it cannot be, the log says so.
func (s *Server) record(r *http.Request, a auth.Action) {
	if err := s.actions.Record(r.Context(), a); err != nil {
		s.o.Logger.ErrorContext(r.Context(), "an action was not recorded", "what", a.What, "error", err,
			"request", auth.RequestID(r.Context()))
	}
}

func (s *Server) endSession(r *http.Request) {
	if cookie, err := r.Cookie(s.cookieName()); err == nil {
		if err := s.sessions.End(r.Context(), auth.NewSecret(cookie.Value)); err != nil {
			s.o.Logger.WarnContext(r.Context(), "a session was not ended", "error", err)
		}
	}
}

// logout ends the session, on every server.
func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	s.endSession(r)
	s.setCookie(w, auth.Secret{})
	if r.Header.Get("Sec-Fetch-Dest") == "document" {
		http.Redirect(w, r, "/login", http.StatusSeeOther)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
