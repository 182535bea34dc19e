package oidc

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// issuer is a small identity provider. Tests change what it says.
type issuer struct {
	*httptest.Server
	key     *ecdsa.PrivateKey
	signs   *ecdsa.PrivateKey // another key than the one it publishes, for a forgery
	claims  map[string]any
	changes map[string]any // of what it would say
	asked   url.Values     // by the browser
	secrets []string       // that the server sent
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: key, signs: key, claims: map[string]any{"email": "ann@example.com",
		"groups": []string{"ops", "other"}}}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize",
			"token_endpoint": i.URL + "/token", "jwks_uri": i.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"ES256"}})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []any{map[string]any{"kty": "EC", "crv": "P-256",
			"alg": "ES256", "use": "sig", "kid": "1",
			"x": number(i.key.X), "y": number(i.key.Y)}}})
	})
	mux.HandleFunc("/token", i.token)
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

func number(n *big.Int) string {
	return base64.RawURLEncoding.EncodeToString(n.FillBytes(make([]byte, 32)))
}

// token answers with an id token, if the verifier is that of the challenge.
func (i *issuer) token(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	_, secret, _ := r.BasicAuth()
	i.secrets = append(i.secrets, secret, r.PostForm.Get("client_secret"))
	sum := sha256.Sum256([]byte(r.PostForm.Get("code_verifier")))
	if base64.RawURLEncoding.EncodeToString(sum[:]) != i.asked.Get("code_challenge") ||
		r.PostForm.Get("code") != "good" {
		http.Error(w, `{"error":"invalid_grant"}`, http.StatusBadRequest)
		return
	}
	claims := map[string]any{"iss": i.URL, "aud": "ferry", "sub": "1234", "exp": time.Now().Add(time.Minute).Unix(),
		"iat":   time.Now().Unix(),
		"nonce": i.asked.Get("nonce")}
	for _, more := range []map[string]any{i.claims, i.changes} {
		for name, value := range more {
			claims[name] = value
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"access_token": "x", "token_type": "Bearer",
		"id_token": i.sign(claims)})
}

func (i *issuer) sign(claims map[string]any) string {
	body, _ := json.Marshal(claims)
	head := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256","kid":"1"}`))
	text := head + "." + base64.RawURLEncoding.EncodeToString(body)
	sum := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, i.signs, sum[:])
	if err != nil {
		panic(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(append(r.FillBytes(make([]byte, 32)),
		s.FillBytes(make([]byte, 32))...))
}

// provider returns one for the issuer.
func (i *issuer) provider(t *testing.T) *Provider {
	t.Helper()
	p, err := New(Options{Issuer: i.URL, ClientID: "ferry", ClientSecret: auth.NewSecret("Canary7"),
		ReturnURL: "https://ferry.example.com/oidc/return",
		Groups: map[string][]auth.Grant{"ops": {{Role: auth.Operator, Topics: []string{"orders.*"}}},
			"admins": {{Role: auth.Administrator}}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.client.CloseIdleConnections)
	p.client.Transport = &http.Transport{DisableKeepAlives: true}
	return p
}

// begin begins a login, as far as the issuer.
func (i *issuer) begin(t *testing.T, p *Provider) Flow {
	t.Helper()
	to, flow, err := p.Begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(to)
	if err != nil || !strings.HasPrefix(to, i.URL+"/authorize?") {
		t.Fatal(to, err)
	}
	i.asked = u.Query()
	return flow
}

func TestLogin(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	p := i.provider(t)
	flow := i.begin(t, p)
	if q := i.asked; q.Get("code_challenge_method") != "S256" || q.Get("redirect_uri") != p.o.ReturnURL ||
		!strings.Contains(q.Get("scope"), "openid") {
		t.Errorf("%v", q)
	}
	flow, ok := ParseFlow(flow.String()) // through a cookie
	who, err := p.Finish(context.Background(), flow, i.asked.Get("state"), "good")
	if !ok || err != nil || who.String() != "oidc ann@example.com" || !who.May(auth.Operate, "orders.eu") ||
		who.May(auth.Operate, "mail") {
		t.Errorf("%+v, %v", who, err)
	}
	if !strings.Contains(fmt.Sprint(i.secrets), "Canary7") {
		t.Error("the server does not say who it is")
	}
}

// TestRefused: whatever is wrong with an answer, nobody is let in, and no secret is told.
func TestRefused(t *testing.T) {
	t.Parallel()
	forger, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, wrong := range map[string]func(i *issuer, f *Flow, state, code *string){
		"a state of another": func(_ *issuer, _ *Flow, state, _ *string) { *state = "x" },
		"no state":           func(_ *issuer, _ *Flow, state, _ *string) { *state = "" },
		"a wrong code":       func(_ *issuer, _ *Flow, _, code *string) { *code = "bad" },
		"a wrong verifier":   func(_ *issuer, f *Flow, _, _ *string) { f.verifier = "x" },
		"another nonce":      func(i *issuer, _ *Flow, _, _ *string) { i.changes = map[string]any{"nonce": "x"} },
		"no nonce":           func(i *issuer, _ *Flow, _, _ *string) { i.changes = map[string]any{"nonce": nil} },
		"another audience":   func(i *issuer, _ *Flow, _, _ *string) { i.changes = map[string]any{"aud": "x"} },
		"another issuer": func(i *issuer, _ *Flow, _,
			_ *string) {
			i.changes = map[string]any{"iss": "https://evil.example"}
		},
		"an expired answer":  func(i *issuer, _ *Flow, _, _ *string) { i.changes = map[string]any{"exp": 1} },
		"a forged signature": func(i *issuer, _ *Flow, _, _ *string) { i.signs = forger },
		"no group":           func(i *issuer, _ *Flow, _, _ *string) { i.changes = map[string]any{"groups": nil} },
		"a group like ours": func(i *issuer, _ *Flow, _,
			_ *string) {
			i.changes = map[string]any{"groups": []string{"OPS", "ops ", "xops"}}
		},
		"odd groups": func(i *issuer, _ *Flow, _, _ *string) {
			i.changes = map[string]any{"groups": []any{1,
				map[string]any{"ops": true}}}
		},
		"unverified mail": func(i *issuer, _ *Flow, _,
			_ *string) {
			i.changes = map[string]any{"email_verified": false}
		},
		"claims of odd types": func(i *issuer, _ *Flow, _, _ *string) {
			i.changes = map[string]any{"email": 1,
				"groups": 2}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newIssuer(t)
			p := i.provider(t)
			flow := i.begin(t, p)
			state, code := i.asked.Get("state"), "good"
			wrong(i, &flow, &state, &code)
			who, err := p.Finish(context.Background(), flow, state, code)
			if !errors.Is(err, driver.ErrRefused) || who != nil || strings.Contains(err.Error(), "Canary7") {
				t.Errorf("%v, %v", who, err)
			}
		})
	}
}

// TestIssuerAway: a server starts without its provider, and asks again at the next login.
func TestIssuerAway(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	p := i.provider(t)
	there := i.Config.Handler
	i.Config.Handler = http.NotFoundHandler()
	if _, _, err := p.Begin(context.Background()); !errors.Is(err, driver.ErrNotApplied) {
		t.Errorf("%v", err)
	}
	i.Config.Handler = there
	i.begin(t, p)
}

func TestWrongOptions(t *testing.T) {
	t.Parallel()
	groups := map[string][]auth.Grant{"a": {{Role: auth.Viewer}}}
	for name, o := range map[string]Options{
		"no issuer": {ClientID: "a", Groups: groups}, "plain http": {Issuer: "http://example.com", ClientID: "a",
			Groups: groups},
		"no client": {Issuer: "https://example.com", Groups: groups},
		"no groups": {Issuer: "https://example.com", ClientID: "a"},
		"an odd role": {Issuer: "https://example.com", ClientID: "a",
			Groups: map[string][]auth.Grant{"a": {{Role: "root"}}}},
	} {
		if _, err := New(o); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, text := range []string{"", "a", "a.b", "a..c", "a.b.c.d"} {
		if _, ok := ParseFlow(text); ok {
			t.Errorf("%q is taken for a flow", text)
		}
	}
}
