// Package encrypt is a filter that encrypts bodies with AES-256-GCM, bound to the topic, the id and the key of their
// message.
//
//	ring, err := encrypt.KeysFromEnv("FERRY_ENCRYPTION_KEYS")
//	filter, err := encrypt.New(encrypt.Options{Keys: ring})
//	broker, err := open.URL(ctx, url, ferry.Options{Filters: []codec.Filter{filter}})
//
// A body is a random nonce of 12 bytes, then the ciphertext with its tag of 16. Everything else of a message is not
// encrypted: brokers need it.
package encrypt

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/ferrymq/ferry/codec"
)

// Name is that of the encoding. The header has the id of the key behind it: "aes-gcm;k=2".
const Name = "aes-gcm"

// MaxMessages is how many messages may be encrypted with one key, by all processes together: beyond it two of them
// could have the same random nonce, which would give both away. Rotate keys before that.
const MaxMessages = 1 << 32

// Options of a filter.
type Options struct {
	// Keys encrypt and decrypt. Without an active one the filter only decrypts, and a publish fails.
	Keys KeyRing
	// Lookup returns the secret of a key that the ring does not have, from a key management service for example: 32
	// bytes, or nil if there is no such key. An error means that it cannot be had now, and the message is retried.
	// Answers are kept: a secret as long as the filter, and that there is none for some seconds. Defaults to none.
	Lookup func(ctx context.Context, id string) (secret []byte, err error)
}

// Filter encrypts and decrypts. It is a codec.Filter.
type Filter struct {
	ring   atomic.Pointer[ring]
	lookup *lookup // nil: none
}

var _ codec.Filter = (*Filter)(nil)

// ring is a KeyRing ready for use.
type ring struct {
	active string // empty: none
	keys   map[string]cipher.AEAD
}

// New returns a filter.
func New(o Options) (*Filter, error) {
	f := &Filter{}
	if o.Lookup != nil {
		f.lookup = newLookup(o.Lookup)
	}
	if o.Keys.Active.ID == "" && len(o.Keys.Old) == 0 && o.Lookup == nil {
		return nil, errors.New("encrypt: there are no keys: set Options.Keys or Options.Lookup")
	}
	return f, f.Rotate(o.Keys)
}

// Rotate replaces the keys, for what is published and consumed from now on. Keep the former active key among the old
// ones as long as there are messages that were encrypted with it. Consumers need a new key before producers use it:
// give it to all as an old one first.
func (f *Filter) Rotate(keys KeyRing) error {
	r := &ring{active: keys.Active.ID, keys: map[string]cipher.AEAD{}}
	all := keys.Old
	if r.active != "" || keys.Active.Secret != nil {
		all = append([]Key{keys.Active}, keys.Old...)
	}
	for _, k := range all {
		aead, err := k.aead()
		if err != nil {
			return err
		}
		if r.keys[k.ID] != nil {
			return fmt.Errorf("encrypt: there are two keys %q: give each an id of its own", k.ID)
		}
		r.keys[k.ID] = aead
	}
	f.ring.Store(r)
	return nil
}

// Names returns Name.
func (*Filter) Names() []string { return []string{Name} }

// Apply encrypts a body with the active key.
func (f *Filter) Apply(_ context.Context, body []byte, a codec.About) ([]byte, string, error) {
	r := f.ring.Load()
	if r.active == "" {
		return nil, "", errors.New("encrypt: there is no active key, and bodies are not sent as they are: set KeyRing.Active")
	}
	aead := r.keys[r.active]
	out := make([]byte, 0, len(body)+aead.Overhead())
	return aead.Seal(out, nil, body, bound(a)), Name + keyParameter + r.active, nil
}

// keyParameter is what is between the name of the encoding and the id of the key.
const keyParameter = ";k="

// Undo decrypts a body with the key that its encoding names.
func (f *Filter) Undo(ctx context.Context, body []byte, encoding string, a codec.About, limit int) ([]byte, error) {
	id, found := strings.CutPrefix(encoding, Name+keyParameter)
	if !found || checkID(id) != nil {
		return nil, fmt.Errorf("encrypt: %.80q does not name a key: correct the producer", encoding)
	}
	aead, err := f.key(ctx, id)
	if err != nil {
		return nil, err
	}
	if len(body) < aead.Overhead() {
		return nil, fmt.Errorf("encrypt: %d bytes are less than any encrypted body has: it was cut", len(body))
	}
	if n := len(body) - aead.Overhead(); n > limit {
		return nil, fmt.Errorf("encrypt: the body has %d bytes, more than the %d that are allowed", n, limit)
	}
	plain, err := aead.Open(nil, nil, body, bound(a))
	if err != nil {
		return nil, fmt.Errorf("encrypt: the body is not authentic under key %q: it was changed or cut, or encrypted for "+
			"another topic, id or key of a message, or with another secret", id)
	}
	return plain, nil
}

// key returns the key with an id.
func (f *Filter) key(ctx context.Context, id string) (cipher.AEAD, error) {
	if aead := f.ring.Load().keys[id]; aead != nil {
		return aead, nil
	}
	if f.lookup != nil {
		return f.lookup.key(ctx, id)
	}
	return nil, unknownKey(id)
}

func unknownKey(id string) error {
	return fmt.Errorf("encrypt: there is no key %q here: add it to KeyRing.Old, then replay the message", id)
}

// bound is what is authenticated beside the body: the message that it belongs to, so that nobody can put it into
// another one.
func bound(a codec.About) []byte {
	const version = "ferry aes-gcm 1"
	b := make([]byte, 0, len(version)+3*binary.MaxVarintLen32+len(a.Topic)+len(a.ID)+len(a.Key))
	b = append(b, version...)
	for _, s := range [...]string{a.Topic, a.ID, a.Key} { // with their lengths: "ab", "c" is not "a", "bc"
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	return b
}

// aead is the cipher of a key. Each Seal takes a random nonce.
func (k Key) aead() (cipher.AEAD, error) {
	if err := k.check(); err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(k.Secret)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}
