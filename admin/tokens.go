package admin

import (
	"context"
	"time"

	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/admin/internal/input"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/internal/jsontime"
)

func (a *API) listTokens(ctx context.Context, in *input.Paging) (api.TokenPage, error) {
	p, err := a.tokens.List(ctx, in.Cursor, in.Limit)
	out := api.TokenPage{Tokens: make([]api.Token, len(p.Tokens)), Next: p.Next}
	for i, t := range p.Tokens {
		out.Tokens[i] = viewToken(t)
	}
	return out, err
}

func viewToken(t auth.Token) api.Token {
	v := api.Token{ID: t.ID, Name: t.Name, Scopes: make([]string, len(t.Scopes)), Topics: list(t.Topics), By: t.By,
		Created: jsontime.At(t.Created), Expires: jsontime.At(t.Expires)}
	for i, s := range t.Scopes {
		v.Scopes[i] = string(s)
	}
	return v
}

type createToken struct{ Body api.CreateToken }

// createToken makes a token. Nobody gives away a scope that they do not have.
func (a *API) createToken(ctx context.Context, in *createToken, note *auth.Action) (api.CreatedToken, error) {
	b := in.Body
	note.Detail = b.Name
	r := auth.TokenRequest{Name: b.Name, Topics: b.Topics, TTL: time.Duration(b.TTL)}
	for _, text := range b.Scopes {
		s := auth.Scope(text)
		if err := auth.CheckScopes([]auth.Scope{s}); err != nil {
			return api.CreatedToken{}, err
		}
		if err := may(ctx, s, ""); err != nil {
			return api.CreatedToken{}, err
		}
		r.Scopes = append(r.Scopes, s)
	}
	t, secret, err := a.tokens.Create(ctx, r)
	return api.CreatedToken{Token: viewToken(t), Text: secret.Reveal()}, err
}

type tokenPath struct {
	ID string `path:"id" maxLength:"128"`
}

func (a *API) revokeToken(ctx context.Context, in *tokenPath, note *auth.Action) error {
	note.Detail = in.ID
	return a.tokens.Revoke(ctx, in.ID)
}
