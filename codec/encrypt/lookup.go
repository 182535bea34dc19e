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

// lookup asks for keys that the ring does not have, and keeps the answers. Callers that want the same key wait for one
// question.
type lookup struct {
	ask func(ctx context.Context, id string) ([]byte, error)

	mu        sync.Mutex
	keys      map[string]cipher.AEAD
	unknown   map[string]time.Time // when it was said
	questions map[string]*question // under way
}

// question is one under way. Its fields are written before done is closed.
type question struct {
	done chan struct{}
	aead cipher.AEAD
	err  error
	gone bool // who asked gave up, which says nothing about the key
}

func newLookup(ask func(context.Context, string) ([]byte, error)) *lookup {
	return &lookup{ask: ask, keys: map[string]cipher.AEAD{}, unknown: map[string]time.Time{},
		questions: map[string]*question{}}
}

func (l *lookup) key(ctx context.Context, id string) (cipher.AEAD, error) {
	for {
		if aead, known := l.kept(id); known {
			if aead == nil {
				return nil, unknownKey(id)
			}
			return aead, nil
		}
		q, mine := l.begin(id)
		switch {
		case q == nil: // it was answered meanwhile
			continue
		case mine:
			l.answer(ctx, id, q)
			return q.aead, q.err
		}
		select {
		case <-q.done:
			if !q.gone {
				return q.aead, q.err
			}
		case <-ctx.Done():
			return nil, notNow(id, context.Cause(ctx))
		}
	}
}

// begin returns the question for a key that is not known, and whether it is the caller's to ask.
func (l *lookup) begin(id string) (q *question, mine bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.find(id); known {
		return nil, false
	}
	if q := l.questions[id]; q != nil {
		return q, false
	}
	q = &question{done: make(chan struct{}), gone: true} // also if it panics
	l.questions[id] = q
	return q, true
}

// answer asks, and lets those go on who wait for it.
func (l *lookup) answer(ctx context.Context, id string, q *question) {
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.questions, id)
		close(q.done)
	}()
	q.aead, q.err = l.fetch(ctx, id)
	q.gone = q.err != nil && ctx.Err() != nil
}

func notNow(id string, err error) error {
	return fmt.Errorf("encrypt: key %q cannot be had now: %w", id, errors.Join(codec.ErrUnavailable, err))
}

// fetch asks for a key.
func (l *lookup) fetch(ctx context.Context, id string) (cipher.AEAD, error) {
	secret, err := l.ask(ctx, id)
	if err != nil {
		return nil, notNow(id, err)
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
	return l.find(id)
}

// find is kept, for who has the lock.
func (l *lookup) find(id string) (aead cipher.AEAD, known bool) {
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
