package wecom

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"sync"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// bucket holds the cursors of accounts and the access token.
const bucket = driver.WeComBucket

// tokens keeps the access token: in memory, and as a named value for other processes, because the vendor allows few
// requests for one. The value is encrypted with a key made of the secret, which who reads the broker need not know.
type tokens struct {
	kv   driver.KV
	name string
	seal cipher.AEAD
	// fetch asks the vendor for a token, and how long it lasts.
	fetch func(ctx context.Context) (string, time.Duration, error)

	turn chan struct{} // who holds it asks others; a mutex would be held across calls

	mu      sync.Mutex
	current string
	until   time.Time
}

func newTokens(kv driver.KV, c *Config, fetch func(ctx context.Context) (string, time.Duration, error)) (*tokens,
	error) {
	key, err := hkdf.Key(sha256.New, []byte(c.Secret), nil, "ferry wecom access token", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	seal, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	return &tokens{kv: kv, name: "token/" + c.Corp, seal: seal, fetch: fetch, turn: make(chan struct{}, 1)}, nil
}

// get returns a token that is not refused: one that was refused before, or none.
func (t *tokens) get(ctx context.Context, refused string) (string, error) {
	if token := t.known(refused); token != "" {
		return token, nil
	}
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	if token := t.known(refused); token != "" { // another had the turn, and got one
		return token, nil
	}
	shared := t.read(ctx)
	if token := string(shared.Data); token != "" && token != refused {
		t.keep(token, shared.Left)
		return token, nil
	}
	token, lasts, err := t.fetch(ctx)
	if err != nil {
		return "", err
	}
	lasts = lasts * 9 / 10 // so that it does not expire on its way
	t.keep(token, lasts)
	t.share(ctx, token, lasts, shared.Revision)
	return token, nil
}

// known returns the token in memory, unless it is the refused one or has expired.
func (t *tokens) known(refused string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current == refused || !time.Now().Before(t.until) {
		return ""
	}
	return t.current
}

func (t *tokens) keep(token string, lasts time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.current, t.until = token, time.Now().Add(lasts)
}

// expiry is when the token in memory ends; zero if there is none.
func (t *tokens) expiry() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.until
}

// read returns the shared value with the token as its data. Without one, or without a broker, the vendor is asked.
func (t *tokens) read(ctx context.Context) driver.Value {
	values, err := t.kv.Get(ctx, bucket, t.name)
	if err != nil {
		return driver.Value{}
	}
	v := values[0]
	size := t.seal.NonceSize()
	if len(v.Data) < size {
		return driver.Value{Revision: v.Revision}
	}
	token, err := t.seal.Open(nil, v.Data[:size], v.Data[size:], []byte(t.name))
	if err != nil { // of another secret
		return driver.Value{Revision: v.Revision}
	}
	v.Data = token
	return v
}

// share writes the token for other processes, unless one of them was faster: theirs is as good.
func (t *tokens) share(ctx context.Context, token string, lasts time.Duration, revision uint64) {
	nonce := make([]byte, t.seal.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	w := driver.Write{Name: t.name, Data: t.seal.Seal(nonce, nonce, []byte(token), []byte(t.name)),
		If: driver.Absent, TTL: max(lasts, driver.MinValueTTL), Quiet: true}
	if revision != 0 {
		w.If = driver.Condition(revision)
	}
	_ = t.kv.Apply(ctx, bucket, driver.KVOptions{}, w) // who does not find it asks the vendor
}

// tokenRefused reports whether the vendor wants another access token.
func tokenRefused(err error) bool {
	var answer *APIError
	return errors.As(err, &answer) && (answer.Code == CodeWrongSecret || answer.Code == CodeWrongToken ||
		answer.Code == CodeExpiredToken)
}
