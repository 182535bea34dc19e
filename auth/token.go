package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

const (
	// TokenTTL is how long a token is good if nothing else is said.
	TokenTTL = 90 * 24 * time.Hour
	// MaxTokenTTL is how long a token can be good.
	MaxTokenTTL = 366 * 24 * time.Hour

	tokensBucket = driver.AuthBucket + ".tokens"
	tokenPrefix  = "ferry_" // so that scanners of secrets recognise one
	tokenIDSize  = 10
)

// Token is what a program shows. Its text is told once, when it is made; the broker has a hash of it.
type Token struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"` // what it is for, for people
	Scopes  []Scope   `json:"scopes"`
	Topics  []string  `json:"topics,omitempty"` // patterns, as in a Grant
	By      string    `json:"by,omitempty"`     // who made it
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"`
}

type storedToken struct {
	Token
	Hash []byte `json:"hash"` // SHA-256 of the text: it is random, so that nothing slower is needed
}

// TokenRequest asks for a token.
type TokenRequest struct {
	Name   string
	Scopes []Scope
	// Topics are patterns of those that it is for. None: every topic.
	Topics []string
	// TTL is how long it is good. Defaults to TokenTTL, and is MaxTokenTTL at most.
	TTL time.Duration
}

// Tokens are the tokens of a broker, the same for all its servers. It is safe for concurrent use.
type Tokens struct{ kv driver.KV }

// NewTokens returns the tokens of a broker.
func NewTokens(b *ferry.Broker) *Tokens { return &Tokens{b.Driver().KV()} }

// Create makes a token, and returns its text, which nobody can learn later. The identity in the context is noted as the
// one who made it.
func (t *Tokens) Create(ctx context.Context, r TokenRequest) (Token, Secret, error) {
	if r.TTL == 0 {
		r.TTL = TokenTTL
	}
	if err := r.check(); err != nil {
		return Token{}, Secret{}, err
	}
	now := time.Now().UTC().Round(time.Millisecond)
	token := Token{ID: strings.ToLower(rand.Text()[:tokenIDSize]), Name: r.Name, Scopes: r.Scopes, Topics: r.Topics,
		Created: now, Expires: now.Add(r.TTL)}
	if by := From(ctx); by != nil {
		token.By = by.String()
	}
	text := tokenPrefix + token.ID + "_" + rand.Text() // 128 bits and more
	hash := sha256.Sum256([]byte(text))
	data, err := json.Marshal(storedToken{token, hash[:]})
	if err != nil {
		return Token{}, Secret{}, err
	}
	w := driver.Write{Name: token.ID, Data: data, If: driver.Absent, TTL: r.TTL}
	if err := t.kv.Apply(ctx, tokensBucket, driver.KVOptions{}, w)[0].Err; err != nil {
		return Token{}, Secret{}, err
	}
	return token, NewSecret(text), nil
}

func (r TokenRequest) check() error {
	if err := driver.CheckName("token", r.Name); err != nil {
		return err
	}
	if len(r.Scopes) == 0 {
		return driver.NewError(driver.ErrInvalid, "the token has no scope", fmt.Sprintf("give some of %v", Scopes()),
			nil)
	}
	if r.TTL < driver.MinValueTTL || r.TTL > MaxTokenTTL {
		return driver.NewError(driver.ErrInvalid, fmt.Sprintf("a token cannot be good for %v", r.TTL),
			fmt.Sprintf("use a second to %v", MaxTokenTTL), nil)
	}
	if err := CheckScopes(r.Scopes); err != nil {
		return err
	}
	return CheckPatterns(r.Topics)
}

// errToken is the same whatever is wrong with a token: guessing learns nothing from it.
func errToken() error {
	return driver.NewError(driver.ErrRefused, "the token is not known: it is wrong, has expired or was revoked",
		"make another: ferry token create NAME", nil)
}

// Check returns who shows the text of a token, or ErrRefused.
func (t *Tokens) Check(ctx context.Context, text Secret) (*Identity, error) {
	id, ok := tokenID(text.Reveal())
	if !ok {
		return nil, errToken()
	}
	stored, err := t.get(ctx, id)
	if errors.Is(err, driver.ErrNotFound) {
		return nil, errToken()
	}
	if err != nil {
		return nil, err
	}
	hash := sha256.Sum256([]byte(text.Reveal()))
	if subtle.ConstantTimeCompare(hash[:], stored.Hash) != 1 {
		return nil, errToken()
	}
	scopes := append([]Scope{}, stored.Scopes...) // never nil: that would bound nothing
	return &Identity{Name: stored.Name, Kind: KindToken, Grants: []Grant{{Role: Administrator, Topics: stored.Topics}},
		Scopes: scopes}, nil
}

// tokenID returns the id in the text of a token.
func tokenID(text string) (string, bool) {
	rest, ok := strings.CutPrefix(text, tokenPrefix)
	id, _, found := strings.Cut(rest, "_")
	return id, ok && found && driver.CheckName("token", id) == nil
}

func (t *Tokens) get(ctx context.Context, id string) (storedToken, error) {
	var s storedToken
	values, err := t.kv.Get(ctx, tokensBucket, id)
	if err != nil {
		return s, err
	}
	if values[0].Revision == 0 {
		return s, driver.NewError(driver.ErrNotFound, fmt.Sprintf("there is no token %.40q", id),
			"list them: ferry token ls", nil)
	}
	if err := json.Unmarshal(values[0].Data, &s); err != nil {
		return s, driver.NewError(driver.ErrInvalid, fmt.Sprintf("token %q cannot be read", id),
			"revoke it and make another", err)
	}
	return s, nil
}

// Revoke ends a token, on every server: at once, or as soon as a server asks again. ErrNotFound if there is none.
func (t *Tokens) Revoke(ctx context.Context, id string) error {
	if err := driver.CheckName("token", id); err != nil {
		return err
	}
	if _, err := t.get(ctx, id); errors.Is(err, driver.ErrNotFound) {
		return err
	}
	return t.kv.Apply(ctx, tokensBucket, driver.KVOptions{}, driver.Write{Name: id, Delete: true})[0].Err
}

// TokenPage is a page of tokens, in order of ids.
type TokenPage struct {
	Tokens []Token
	// Next continues after this page; empty at the end.
	Next string
}

// List returns a page of the tokens that are good, from a cursor on; at most limit, 100 if that is 0.
func (t *Tokens) List(ctx context.Context, cursor string, limit int) (TokenPage, error) {
	p, err := t.kv.List(ctx, driver.KVQuery{Bucket: tokensBucket, After: cursor, Limit: limit})
	if err != nil {
		return TokenPage{}, err
	}
	out := TokenPage{Next: p.Next}
	for _, v := range p.Values {
		var s storedToken
		if err := json.Unmarshal(v.Data, &s); err != nil {
			s.ID, s.Name = v.Name, "(cannot be read)" // so that it can be revoked
		}
		out.Tokens = append(out.Tokens, s.Token)
	}
	return out, nil
}
