package auth

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry/driver"
)

func TestTokens(t *testing.T) {
	t.Parallel()
	b := broker(t)
	tokens := NewTokens(b)
	ctx := With(context.Background(), &Identity{Name: "ann", Kind: KindUser})
	token, text, err := tokens.Create(ctx, TokenRequest{Name: "ci", Scopes: []Scope{Publish},
		Topics: []string{"orders.*"}})
	if err != nil || token.By != "user ann" || token.Expires.Sub(token.Created) != TokenTTL {
		t.Fatalf("%+v, %v", token, err)
	}
	i, err := tokens.Check(ctx, text)
	if err != nil || i.String() != "token ci" || !i.May(Publish, "orders.eu") || i.May(Publish, "mail") ||
		i.May(View, "orders.eu") {
		t.Fatalf("%+v, %v", i, err)
	}
	p, err := tokens.List(ctx, "", 0)
	if err != nil || len(p.Tokens) != 1 || p.Tokens[0].ID != token.ID {
		t.Fatalf("%+v, %v", p, err)
	}
	values, _ := b.Driver().KV().List(ctx, driver.KVQuery{Bucket: tokensBucket})
	secret := text.Reveal()[strings.LastIndex(text.Reveal(), "_")+1:]
	if strings.Contains(string(values.Values[0].Data), secret) {
		t.Error("the text of the token lies in the broker")
	}
	if err := errors.Join(tokens.Revoke(ctx, token.ID)); err != nil {
		t.Fatal(err)
	}
	if _, err := tokens.Check(ctx, text); !errors.Is(err, driver.ErrRefused) {
		t.Errorf("a revoked token: %v", err)
	}
	if err := tokens.Revoke(ctx, token.ID); !errors.Is(err, driver.ErrNotFound) {
		t.Errorf("revoked twice: %v", err)
	}
}

// TestWrongTokens: every wrong text gets the same answer.
func TestWrongTokens(t *testing.T) {
	t.Parallel()
	ctx, tokens := context.Background(), NewTokens(broker(t))
	_, text, err := tokens.Create(ctx, TokenRequest{Name: "ci", Scopes: Scopes()})
	if err != nil {
		t.Fatal(err)
	}
	good := text.Reveal()
	for _, wrong := range []string{"", "x", "ferry_", "ferry__", good[:len(good)-1], good + "x", strings.ToUpper(good),
		"ferry_unknown_" + good[17:], "ferry_a b_c", "ferry_\x00_c", strings.Repeat("ferry_", 10_000)} {
		if _, err := tokens.Check(ctx, NewSecret(wrong)); !errors.Is(err, driver.ErrRefused) ||
			err.Error() != errToken().Error() {
			t.Errorf("%.40q: %v", wrong, err)
		}
	}
	for name, r := range map[string]TokenRequest{
		"no name": {Scopes: Scopes()}, "no scope": {Name: "a"}, "an odd scope": {Name: "a", Scopes: []Scope{"root"}},
		"an odd topic":   {Name: "a", Scopes: Scopes(), Topics: []string{"?"}},
		"a negative TTL": {Name: "a", Scopes: Scopes(), TTL: -1},
		"a long TTL":     {Name: "a", Scopes: Scopes(), TTL: MaxTokenTTL + 1},
	} {
		if _, _, err := tokens.Create(ctx, r); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTokenExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, tokens := context.Background(), NewTokens(broker(t))
		_, text, err := tokens.Create(ctx, TokenRequest{Name: "ci", Scopes: Scopes(), TTL: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour - time.Minute)
		if _, err := tokens.Check(ctx, text); err != nil {
			t.Errorf("before its time: %v", err)
		}
		time.Sleep(2 * time.Minute)
		if _, err := tokens.Check(ctx, text); !errors.Is(err, driver.ErrRefused) {
			t.Errorf("an expired token: %v", err)
		}
	})
}

// TestTokenWithoutScopes: one whose scopes somebody removed in the broker may do nothing, not everything.
func TestTokenWithoutScopes(t *testing.T) {
	t.Parallel()
	b, ctx := broker(t), context.Background()
	tokens := NewTokens(b)
	token, text, err := tokens.Create(ctx, TokenRequest{Name: "ci", Scopes: []Scope{View}})
	if err != nil {
		t.Fatal(err)
	}
	values, _ := b.Driver().KV().Get(ctx, tokensBucket, token.ID)
	data := strings.Replace(string(values[0].Data), `["view"]`, `null`, 1)
	b.Driver().KV().Apply(ctx, tokensBucket, driver.KVOptions{}, driver.Write{Name: token.ID, Data: []byte(data)})
	if i, err := tokens.Check(ctx, text); err != nil || i.MayAny(View) || i.MayAny(Admin) {
		t.Errorf("%+v, %v", i, err)
	}
}
