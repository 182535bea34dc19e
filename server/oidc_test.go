package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/auth/oidc"
)

// TestOIDC: the server sends a browser to the provider with a cookie, and takes nobody back who was not sent. That a
// login with a good answer succeeds is tested beside the package that reads it.
func TestOIDC(t *testing.T) {
	t.Parallel()
	var issuer *httptest.Server
	issuer = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/.well-known/openid-configuration" {
			http.Error(w, "no", http.StatusBadRequest)
			return
		}
		writeJSON(w, http.StatusOK, map[string]string{"issuer": issuer.URL,
			"authorization_endpoint": issuer.URL + "/authorize",
			"token_endpoint":         issuer.URL + "/token", "jwks_uri": issuer.URL + "/keys"})
	}))
	issuer.Config.SetKeepAlivesEnabled(false)
	t.Cleanup(issuer.Close)
	r := start(t, Options{OIDC: oidc.Options{Issuer: issuer.URL, ClientID: "ferry",
		Groups: map[string][]auth.Grant{"ops": {{Role: auth.Viewer}}}}})
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
