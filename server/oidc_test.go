package server

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/auth/oidc"
	"github.com/ferrymq/ferry/internal/oidctest"
)

// startOIDC runs a server with an identity provider, whose group ops has a role.
func startOIDC(t *testing.T, role auth.Role) (*rig, *oidctest.Issuer) {
	t.Helper()
	issuer := oidctest.New(t)
	return start(t, Options{Mounts: []Mount{whoami},
		OIDC: oidc.Options{Issuer: issuer.URL, ClientID: "ferry", ClientSecret: auth.NewSecret("Canary7"),
			Groups: map[string][]auth.Grant{"ops": {{Role: role}}}}}), issuer
}

// TestOIDC: the server sends a browser to the provider with a cookie, and takes nobody back who was not sent.
func TestOIDC(t *testing.T) {
	t.Parallel()
	r, issuer := startOIDC(t, auth.Viewer)
	if a := r.do("GET", "/login", ""); !strings.Contains(a.text, `href="/oidc/login"`) {
		t.Error("the page does not show the provider")
	}
	a := r.do("GET", "/oidc/login", "")
	to := a.Header.Get("Location")
	if a.StatusCode != 303 || !strings.HasPrefix(to, issuer.URL+"/authorize?") ||
		!strings.Contains(to, "oidc%2Freturn") {
		t.Fatalf("%s %s", a.Status, to)
	}
	if c := a.Cookies()[0]; c.SameSite != http.SameSiteLaxMode || !c.HttpOnly || c.MaxAge != int(oidcFor.Seconds()) {
		t.Errorf("%+v", c)
	}
	flow := a.cookie(t)
	_, state, _ := strings.Cut(to, "state=")
	for _, path := range []string{"?state=" + state + "&code=x", "?state=x&code=x", "", "?error=access_denied"} {
		r.do("GET", "/oidc/return"+path, "", "Cookie", flow).problem(t, 401, "unauthenticated")
	}
	r.do("GET", "/oidc/return?state="+state+"&code=x", "").problem(t, 401, "unauthenticated")
}

// TestOIDCLogin: a browser goes to the provider and comes back with a session, which knows who it is until the logout.
func TestOIDCLogin(t *testing.T) {
	t.Parallel()
	r, issuer := startOIDC(t, auth.Operator)
	begun := r.do("GET", "/oidc/login", "")
	res, err := r.http.Get(begun.Header.Get("Location")) // the provider, which sends the browser back
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	back, err := url.Parse(res.Header.Get("Location"))
	if err != nil || back.Path != oidcReturn || !strings.HasPrefix(back.String(), r.URL()) {
		t.Fatalf("the provider sends the browser to %v, %v", back, err)
	}
	r.do("GET", back.RequestURI(), "").problem(t, 401, "unauthenticated") // in another browser
	entered := r.do("GET", back.RequestURI(), "", "Cookie", begun.cookie(t))
	if entered.StatusCode != http.StatusOK || !strings.Contains(entered.text, "refresh") {
		t.Fatalf("%s %s", entered.Status, entered.text)
	}
	session := entered.cookie(t)
	if a := r.do("GET", "/api/who", "", "Cookie", session); a.StatusCode != http.StatusOK ||
		a.text != "oidc ann@example.com" {
		t.Errorf("the session is of %s %s", a.Status, a.text)
	}
	if a := r.do("POST", "/logout", "", "Cookie", session, "Origin", r.URL()); a.StatusCode >= 400 {
		t.Errorf("the logout: %s %s", a.Status, a.text)
	}
	r.do("GET", "/api/who", "", "Cookie", session).problem(t, 401, "unauthenticated")
	if !strings.Contains(strings.Join(issuer.Secrets, " "), "Canary7") || strings.Contains(r.logs.String(), "Canary7") {
		t.Errorf("the secret went to the provider: %v; the log: %s", issuer.Secrets, r.logs)
	}
	issuer.Changes = map[string]any{"groups": []string{"others"}}
	begun = r.do("GET", "/oidc/login", "")
	if res, err = r.http.Get(begun.Header.Get("Location")); err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	back, _ = url.Parse(res.Header.Get("Location"))
	r.do("GET", back.RequestURI(), "", "Cookie", begun.cookie(t)).problem(t, 401, "unauthenticated") // who is in no group
}
