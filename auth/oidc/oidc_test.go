package oidc

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/oidctest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// issuer is an identity provider. Tests change what it says.
type issuer struct{ *oidctest.Issuer }

func newIssuer(t *testing.T) *issuer { return &issuer{oidctest.New(t)} }

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
	i.Asked = u.Query()
	return flow
}

func TestLogin(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	p := i.provider(t)
	flow := i.begin(t, p)
	if q := i.Asked; q.Get("code_challenge_method") != "S256" || q.Get("redirect_uri") != p.o.ReturnURL ||
		!strings.Contains(q.Get("scope"), "openid") {
		t.Errorf("%v", q)
	}
	flow, ok := ParseFlow(flow.String()) // through a cookie
	who, err := p.Finish(context.Background(), flow, i.Asked.Get("state"), oidctest.Code)
	if !ok || err != nil || who.String() != "oidc ann@example.com" || !who.May(auth.Operate, "orders.eu") ||
		who.May(auth.Operate, "mail") {
		t.Errorf("%+v, %v", who, err)
	}
	if !strings.Contains(fmt.Sprint(i.Secrets), "Canary7") {
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
		"another nonce":      func(i *issuer, _ *Flow, _, _ *string) { i.Changes = map[string]any{"nonce": "x"} },
		"no nonce":           func(i *issuer, _ *Flow, _, _ *string) { i.Changes = map[string]any{"nonce": nil} },
		"another audience":   func(i *issuer, _ *Flow, _, _ *string) { i.Changes = map[string]any{"aud": "x"} },
		"another issuer": func(i *issuer, _ *Flow, _,
			_ *string) {
			i.Changes = map[string]any{"iss": "https://evil.example"}
		},
		"an expired answer":  func(i *issuer, _ *Flow, _, _ *string) { i.Changes = map[string]any{"exp": 1} },
		"a forged signature": func(i *issuer, _ *Flow, _, _ *string) { i.Signs = forger },
		"no group":           func(i *issuer, _ *Flow, _, _ *string) { i.Changes = map[string]any{"groups": nil} },
		"a group like ours": func(i *issuer, _ *Flow, _,
			_ *string) {
			i.Changes = map[string]any{"groups": []string{"OPS", "ops ", "xops"}}
		},
		"odd groups": func(i *issuer, _ *Flow, _, _ *string) {
			i.Changes = map[string]any{"groups": []any{1,
				map[string]any{"ops": true}}}
		},
		"unverified mail": func(i *issuer, _ *Flow, _,
			_ *string) {
			i.Changes = map[string]any{"email_verified": false}
		},
		"claims of odd types": func(i *issuer, _ *Flow, _, _ *string) {
			i.Changes = map[string]any{"email": 1,
				"groups": 2}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newIssuer(t)
			p := i.provider(t)
			flow := i.begin(t, p)
			state, code := i.Asked.Get("state"), oidctest.Code
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
