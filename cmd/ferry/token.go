package main

import (
	"context"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/internal/jsontime"
)

const tokenLong = `A token is what a program shows a server: Authorization: Bearer ... Its text is printed once, when
it is made; the broker has a hash of it. Scopes: publish, consume, view, operate, payload, metrics, admin.

The command works on the broker itself, so that the first token can be made before there is a server.`

const tokenExample = `  ferry token create ci --scope publish --topic 'orders.*' --ttl 720h
  ferry token create grafana --scope metrics
  ferry token ls
  ferry token revoke k3wz5ljpxa`

func newToken(p process) *cobra.Command {
	c := newNoun("token", "Make, list and revoke tokens of programs", tokenExample, newTokenCreate(p), newTokenList(p),
		newTokenRevoke(p))
	c.Long = tokenLong
	return c
}

// tokenView is a token in JSON. It is stable.
type tokenView struct {
	ID      string         `json:"id"`
	Name    string         `json:"name"`
	Scopes  []auth.Scope   `json:"scopes"`
	Topics  []string       `json:"topics,omitempty"`
	By      string         `json:"by,omitempty"`
	Created *jsontime.Time `json:"created,omitempty"`
	Expires *jsontime.Time `json:"expires,omitempty"`
	Text    string         `json:"text,omitempty"` // when it is made, and never again
}

func viewToken(t auth.Token) tokenView {
	return tokenView{ID: t.ID, Name: t.Name, Scopes: t.Scopes, Topics: t.Topics, By: t.By,
		Created: jsontime.At(t.Created), Expires: jsontime.At(t.Expires)}
}

var tokenColumns = []column[tokenView]{
	{title: "id", cell: func(v tokenView) any { return v.ID }},
	{title: "name", width: 32, cell: func(v tokenView) any { return v.Name }},
	{title: "scopes", cell: func(v tokenView) any { return joinTexts(v.Scopes) }},
	{title: "topics", width: 32, cell: func(v tokenView) any { return joinTexts(v.Topics) }},
	{title: "by", width: 24, cell: func(v tokenView) any { return v.By }},
	{title: "expires", cell: func(v tokenView) any { return textOf(v.Expires) }},
}

func joinTexts[T ~string](all []T) string {
	texts := make([]string, len(all))
	for i, one := range all {
		texts[i] = string(one)
	}
	return strings.Join(texts, " ")
}

// asOperator returns a context of the person at this terminal: what they do is recorded under their name.
func asOperator(ctx context.Context) context.Context {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	return auth.With(ctx, &auth.Identity{Name: name, Kind: "cli"})
}

// act does something as the operator, and records how it ended.
func act(ctx context.Context, b *ferry.Broker, a auth.Action, do func(ctx context.Context) error) error {
	ctx = asOperator(ctx)
	err := do(ctx)
	a.Outcome = auth.Done
	if err != nil {
		a.Outcome = auth.Failed
	}
	if recorded := auth.NewActions(b).Record(ctx, a); err == nil {
		err = recorded
	}
	return err
}

func newTokenCreate(p process) *cobra.Command {
	c := &cobra.Command{Use: "create NAME", Short: "Make a token, and print its text once",
		Long: `Makes a token. Standard output has its text and nothing else, so that it can go into a file or a
secret store.`,
		Example: `  ferry token create ci --scope publish --topic 'orders.*' --ttl 720h > ci.token
  ferry token create ops --scope view,operate,payload --output json`}
	r := newRemote(p, c)
	r.begins = true
	var request auth.TokenRequest
	var scopes []string
	c.Flags().StringSliceVar(&scopes, "scope", nil,
		"what it may do: publish, consume, view, operate, payload, metrics, admin")
	c.Flags().StringSliceVar(&request.Topics, "topic", nil,
		"patterns of topics that it is for, orders.* for example (default: all)")
	c.Flags().DurationVar(&request.TTL, "ttl", auth.TokenTTL, "how long it is good, at most 8784h")
	c.RunE = func(c *cobra.Command, args []string) error {
		request.Name = args[0]
		for _, s := range scopes {
			request.Scopes = append(request.Scopes, auth.Scope(s))
		}
		return r.with(c.Context(), func(s session) error { return s.createToken(c.Context(), request) })
	}
	return c
}

func (s session) createToken(ctx context.Context, request auth.TokenRequest) error {
	var token auth.Token
	var text auth.Secret
	err := act(ctx, s.broker, auth.Action{What: "token.create", Detail: request.Name},
		func(ctx context.Context) (err error) {
			token, text, err = auth.NewTokens(s.broker).Create(ctx, request)
			return err
		})
	if err != nil {
		return err
	}
	v := viewToken(token)
	v.Text = text.Reveal()
	return s.one(v, func() error {
		s.notef("token %s is good until %s; its text is not shown again", token.ID, token.Expires.Format(time.RFC3339))
		return s.sayf("%s", v.Text)
	})
}

func newTokenList(p process) *cobra.Command {
	c := &cobra.Command{Use: "ls", Short: "List the tokens that are good",
		Example: "  ferry token ls\n  ferry token ls --output json"}
	r := newRemote(p, c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return r.with(c.Context(), func(s session) error { return s.listTokens(c.Context()) })
	}
	return c
}

func (s session) listTokens(ctx context.Context) error {
	l := newListing(s.remote, tokenColumns)
	tokens := auth.NewTokens(s.broker)
	for cursor := ""; ; {
		p, err := tokens.List(ctx, cursor, 0)
		if err != nil {
			return err
		}
		for _, t := range p.Tokens {
			if err := l.add(viewToken(t)); err != nil {
				return err
			}
		}
		if cursor = p.Next; cursor == "" {
			return l.end("No token is good. Make one: ferry token create NAME --scope view")
		}
	}
}

func newTokenRevoke(p process) *cobra.Command {
	c := &cobra.Command{Use: "revoke ID", Short: "End a token at once, on every server",
		Example: "  ferry token revoke k3wz5ljpxa"}
	r := newRemote(p, c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return r.with(c.Context(), func(s session) error {
			err := act(c.Context(), s.broker, auth.Action{What: "token.revoke", Detail: args[0]},
				func(ctx context.Context) error {
					return auth.NewTokens(s.broker).Revoke(ctx, args[0])
				})
			if err != nil {
				return err
			}
			return s.one(struct {
				Revoked string `json:"revoked"`
			}{args[0]}, func() error { return s.sayf("%s is revoked", args[0]) })
		})
	}
	return c
}
