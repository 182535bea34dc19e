package server

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/ferrymq/ferry/auth"
)

const (
	// knownFor is how long a token that was good is taken for good: a program that asks a thousand times a second costs
	// the broker one question. A token that is revoked is refused after it at the latest.
	knownFor  = time.Second
	mostKnown = 10_000
)

// known are tokens that were good a moment ago.
type known struct {
	mu     sync.Mutex
	tokens map[[sha256.Size]byte]knownToken
}

type knownToken struct {
	who   *auth.Identity
	until time.Time
}

// check returns who shows the text of a token. Errors are not remembered.
func (k *known) check(ctx context.Context, tokens *auth.Tokens, text auth.Secret) (*auth.Identity, error) {
	hash := sha256.Sum256([]byte(text.Reveal()))
	if who := k.find(hash, time.Now()); who != nil {
		return who, nil
	}
	begin := time.Now()
	who, err := tokens.Check(ctx, text)
	if err == nil {
		k.add(hash, knownToken{who, begin.Add(knownFor)})
	}
	return who, err
}

func (k *known) find(hash [sha256.Size]byte, now time.Time) *auth.Identity {
	k.mu.Lock()
	defer k.mu.Unlock()
	if t, ok := k.tokens[hash]; ok && now.Before(t.until) {
		return t.who
	}
	return nil
}

// add remembers a token. When there are too many all are forgotten: that costs a question each.
func (k *known) add(hash [sha256.Size]byte, t knownToken) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.tokens == nil || len(k.tokens) >= mostKnown {
		k.tokens = map[[sha256.Size]byte]knownToken{}
	}
	k.tokens[hash] = t
}
