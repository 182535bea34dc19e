// Package oidc lets people log in with an identity provider, by OpenID Connect: the code flow with PKCE.
//
// The provider says who somebody is and in which groups they are; which roles a group has is up to [Options.Groups].
// Nobody is let in for being known to the provider alone.
package oidc

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	gooidc "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver"
)

// Options of a Provider.
type Options struct {
	// Issuer is the URL of the provider, and ClientID the name under which it knows this server. Required.
	Issuer, ClientID string
	ClientSecret     auth.Secret
	// ReturnURL is where the provider sends people back to. A server sets it.
	ReturnURL string
	// Scopes are asked for besides openid. Default to profile, email and groups.
	Scopes []string
	// NameClaim says what people are called in the list of actions. Defaults to email, which must be verified.
	NameClaim string
	// GroupsClaim has the groups of somebody. Defaults to groups.
	GroupsClaim string
	// Groups have grants. Who is in none of them is refused. Required.
	Groups map[string][]auth.Grant
}

func (o Options) resolved() (Options, error) {
	bad := func(text, hint string) (Options, error) {
		return o, driver.NewError(driver.ErrInvalid, text, hint, nil)
	}
	switch {
	case !strings.HasPrefix(o.Issuer, "https://") && !strings.HasPrefix(o.Issuer, "http://127.0.0.1"):
		return bad("the issuer of OIDC is no https URL", "use the one that its documentation names")
	case o.ClientID == "":
		return bad("OIDC has no client id", "register the server with the provider")
	case len(o.Groups) == 0:
		return bad("no group of OIDC has a role: nobody could log in", "give some groups roles")
	}
	for _, grants := range o.Groups {
		for _, g := range grants {
			if err := g.Check(); err != nil {
				return o, err
			}
		}
	}
	if o.Scopes == nil {
		o.Scopes = []string{"profile", "email", "groups"}
	}
	if o.NameClaim == "" {
		o.NameClaim = "email"
	}
	if o.GroupsClaim == "" {
		o.GroupsClaim = "groups"
	}
	return o, nil
}

// Provider is an identity provider. It is safe for concurrent use.
type Provider struct {
	o      Options
	client *http.Client
	found  atomic.Pointer[gooidc.Provider] // once it was asked: a server starts while its provider is away
}

// New checks the options. The provider is first asked when somebody logs in.
func New(o Options) (*Provider, error) {
	o, err := o.resolved()
	if err != nil {
		return nil, err
	}
	return &Provider{o: o, client: &http.Client{Timeout: 10 * time.Second}}, nil
}

// Flow is a login under way. The browser keeps it in a cookie, so that any server can finish what another began.
type Flow struct{ state, nonce, verifier string }

// String returns the flow for a cookie.
func (f Flow) String() string { return f.state + "." + f.nonce + "." + f.verifier }

// ParseFlow reads what String returned.
func ParseFlow(text string) (Flow, bool) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 || slices.Contains(parts, "") {
		return Flow{}, false
	}
	return Flow{parts[0], parts[1], parts[2]}, true
}

// Begin returns where to send a browser, and the flow to remember.
func (p *Provider) Begin(ctx context.Context) (string, Flow, error) {
	config, _, err := p.config(ctx)
	if err != nil {
		return "", Flow{}, err
	}
	f := Flow{state: rand.Text(), nonce: rand.Text(), verifier: oauth2.GenerateVerifier()}
	return config.AuthCodeURL(f.state, gooidc.Nonce(f.nonce), oauth2.S256ChallengeOption(f.verifier)), f, nil
}

// config asks the provider for its endpoints, once.
func (p *Provider) config(ctx context.Context) (oauth2.Config, *gooidc.Provider, error) {
	found := p.found.Load()
	if found == nil {
		var err error
		// the keys of the provider are fetched later, too: not in the context of this request
		ctx = gooidc.ClientContext(context.WithoutCancel(ctx), p.client)
		if found, err = gooidc.NewProvider(ctx, p.o.Issuer); err != nil {
			return oauth2.Config{}, nil, driver.NewError(driver.ErrNotApplied, "the identity provider does not answer",
				"try again, or log in with a user of Ferry", err)
		}
		p.found.Store(found)
	}
	return oauth2.Config{ClientID: p.o.ClientID, ClientSecret: p.o.ClientSecret.Reveal(), Endpoint: found.Endpoint(),
		RedirectURL: p.o.ReturnURL, Scopes: append([]string{gooidc.ScopeOpenID}, p.o.Scopes...)}, found, nil
}

// Finish returns who came back from the provider with a state and a code. ErrRefused says that it is not to be
// believed, or that somebody has no role here.
func (p *Provider) Finish(ctx context.Context, f Flow, state, code string) (*auth.Identity, error) {
	if subtle.ConstantTimeCompare([]byte(f.state), []byte(state)) != 1 {
		return nil, refused("the login was not begun in this browser", nil)
	}
	config, found, err := p.config(ctx)
	if err != nil {
		return nil, err
	}
	ctx = gooidc.ClientContext(ctx, p.client)
	tokens, err := config.Exchange(ctx, code, oauth2.VerifierOption(f.verifier))
	if err != nil {
		return nil, refused("the identity provider did not confirm the login", nil) // its answer may hold secrets
	}
	raw, _ := tokens.Extra("id_token").(string)
	id, err := found.Verifier(&gooidc.Config{ClientID: p.o.ClientID}).Verify(ctx, raw)
	if err != nil {
		return nil, refused("the answer of the identity provider cannot be verified", err)
	}
	if subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(f.nonce)) != 1 {
		return nil, refused("the answer of the identity provider belongs to another login", nil)
	}
	claims := map[string]any{}
	if err := id.Claims(&claims); err != nil {
		return nil, refused("the claims of the identity provider cannot be read", err)
	}
	return p.identity(id.Subject, claims)
}

func refused(text string, cause error) error {
	return driver.NewError(driver.ErrRefused, text, "log in again; if it stays so, ask an administrator", cause)
}

// identity gives somebody the grants of their groups.
func (p *Provider) identity(subject string, claims map[string]any) (*auth.Identity, error) {
	name, _ := claims[p.o.NameClaim].(string)
	if verified, told := claims["email_verified"].(bool); p.o.NameClaim == "email" && told && !verified {
		return nil, refused("the address of mail is not verified", nil)
	}
	if name == "" {
		name = subject
	}
	i := &auth.Identity{Name: name, Kind: auth.KindOIDC}
	groups := textsOf(claims[p.o.GroupsClaim])
	for _, group := range slices.Sorted(maps.Keys(p.o.Groups)) {
		if slices.Contains(groups, group) {
			i.Grants = append(i.Grants, p.o.Groups[group]...)
		}
	}
	if len(i.Grants) == 0 {
		return nil, driver.NewError(driver.ErrRefused, fmt.Sprintf("%.80q is in no group that has a role", name),
			"an administrator gives groups roles under oidc.groups of the configuration", nil)
	}
	return i, nil
}

// textsOf reads a claim that is a text or a list of texts.
func textsOf(claim any) []string {
	switch c := claim.(type) {
	case string:
		return []string{c}
	case []any:
		var all []string
		for _, one := range c {
			if text, ok := one.(string); ok {
				all = append(all, text)
			}
		}
		return all
	}
	return nil
}
