package encrypt

import (
	"context"
	"crypto/cipher"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ferrymq/ferry/codec"
)

// Bounds of what is kept of answers.
const (
	maxKept    = 1000
	unknownFor = 5 * time.Second
)

// lookup asks for keys that the ring does not have, and keeps the answers.
type lookup struct {
	ask func(ctx context.Context, id string) ([]byte, error)

	mu      sync.Mutex
	keys    map[string]cipher.AEAD
	unknown map[string]time.Time // when it was said
}

func newLookup(ask func(context.Context, string) ([]byte, error)) *lookup {
	return &lookup{ask: ask, keys: map[string]cipher.AEAD{}, unknown: map[string]time.Time{}}
}

func (l *lookup) key(ctx context.Context, id string) (cipher.AEAD, error) {
	if aead, known := l.kept(id); known {
		if aead == nil {
			return nil, unknownKey(id)
		}
		return aead, nil
	}
	secret, err := l.ask(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("encrypt: key %q cannot be had now: %w", id, errors.Join(codec.ErrUnavailable, err))
	}
	if secret == nil {
		l.keep(id, nil)
		return nil, unknownKey(id)
	}
	aead, err := Key{ID: id, Secret: secret}.aead()
	if err != nil {
		return nil, err
	}
	l.keep(id, aead)
	return aead, nil
}

// kept returns an earlier answer; nil: there is no such key.
func (l *lookup) kept(id string) (aead cipher.AEAD, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if aead := l.keys[id]; aead != nil {
		return aead, true
	}
	said, known := l.unknown[id]
	return nil, known && time.Since(said) < unknownFor
}

// keep keeps an answer. Ids come from messages that anybody may have written: when there are too many, all are
// forgotten.
func (l *lookup) keep(id string, aead cipher.AEAD) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.unknown, id)
	switch {
	case aead == nil:
		if len(l.unknown) >= maxKept {
			clear(l.unknown)
		}
		l.unknown[id] = time.Now()
	default:
		if len(l.keys) >= maxKept {
			clear(l.keys)
		}
		l.keys[id] = aead
	}
}
