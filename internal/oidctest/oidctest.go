// Package oidctest has an identity provider for tests: it says what they want it to.
package oidctest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"
)

// Code is the one that Issuer takes.
const Code = "good"

// Issuer is a small identity provider, where everybody is logged in as one person.
type Issuer struct {
	*httptest.Server
	key *ecdsa.PrivateKey
	// Signs is another key than the one it publishes, for a forgery.
	Signs *ecdsa.PrivateKey
	// Claims are what it says of the person, and Changes what it says instead.
	Claims, Changes map[string]any
	// Asked is what the browser came with last.
	Asked url.Values
	// Secrets are those that the server sent.
	Secrets []string
}

// New starts an issuer, which ends with the test.
func New(t testing.TB) *Issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &Issuer{key: key, Signs: key,
		Claims: map[string]any{"email": "ann@example.com", "groups": []string{"ops", "other"}}}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize",
			"token_endpoint": i.URL + "/token", "jwks_uri": i.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"ES256"}})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []any{map[string]any{"kty": "EC", "crv": "P-256",
			"alg": "ES256", "use": "sig", "kid": "1", "x": number(i.key.X), "y": number(i.key.Y)}}})
	})
	mux.HandleFunc("/authorize", i.authorize)
	mux.HandleFunc("/token", i.token)
	i.Server = httptest.NewUnstartedServer(mux)
	i.Config.SetKeepAlivesEnabled(false)
	i.Start()
	t.Cleanup(i.Close)
	return i
}

func number(n *big.Int) string {
	return base64.RawURLEncoding.EncodeToString(n.FillBytes(make([]byte, 32)))
}

// authorize sends the browser back with a code.
func (i *Issuer) authorize(w http.ResponseWriter, r *http.Request) {
	i.Asked = r.URL.Query()
	back := url.Values{"code": {Code}, "state": {i.Asked.Get("state")}}
	http.Redirect(w, r, i.Asked.Get("redirect_uri")+"?"+back.Encode(), http.StatusSeeOther)
}

// token answers with an id token, if the verifier is that of the challenge.
func (i *Issuer) token(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	_, secret, _ := r.BasicAuth()
	i.Secrets = append(i.Secrets, secret, r.PostForm.Get("client_secret"))
	sum := sha256.Sum256([]byte(r.PostForm.Get("code_verifier")))
	if base64.RawURLEncoding.EncodeToString(sum[:]) != i.Asked.Get("code_challenge") || r.PostForm.Get("code") != Code {
		http.Error(w, `{"error":"invalid_grant"}`, http.StatusBadRequest)
		return
	}
	claims := map[string]any{"iss": i.URL, "aud": "ferry", "sub": "1234", "exp": time.Now().Add(time.Minute).Unix(),
		"iat": time.Now().Unix(), "nonce": i.Asked.Get("nonce")}
	maps.Copy(claims, i.Claims)
	maps.Copy(claims, i.Changes)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"access_token": "x", "token_type": "Bearer", "id_token": i.sign(claims)})
}

func (i *Issuer) sign(claims map[string]any) string {
	body, _ := json.Marshal(claims)
	head := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256","kid":"1"}`))
	text := head + "." + base64.RawURLEncoding.EncodeToString(body)
	sum := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, i.Signs, sum[:])
	if err != nil {
		panic(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(
		append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...))
}
