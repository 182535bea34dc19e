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

	mu      sync.Mutex
	current string
	until   time.Time
	asking  *tokenRequest // nil: nobody asks
}

// tokenRequest is one for a token: who needs one meanwhile waits for it, and shares what becomes of it.
type tokenRequest struct {
	done chan struct{}
	// Of a request that has ended: why it failed, and whether only because who made it did not want it any more.
	err       error
	abandoned bool
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
	return &tokens{kv: kv, name: "token/" + c.Corp, seal: seal, fetch: fetch}, nil
}

// get returns a token that is not refused: one that was refused before, or none. Those who need one at the same time
// ask once, and fail together: a vendor that is slow or wants fewer calls is not asked by one after the other.
func (t *tokens) get(ctx context.Context, refused string) (string, error) {
	for {
		token, r, mine := t.begin(refused)
		switch {
		case token != "":
			return token, nil
		case mine:
			token, err := t.ask(ctx, refused)
			t.end(r, err, ctx.Err() != nil)
			return token, err
		}
		select {
		case <-r.done:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
		if r.err != nil && !r.abandoned {
			return "", r.err
		}
	}
}

// begin returns the token that is known, or the request for one, which may be the caller's to make.
func (t *tokens) begin(refused string) (token string, r *tokenRequest, mine bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if token := t.known(refused); token != "" {
		return token, nil, false
	}
	if t.asking != nil {
		return "", t.asking, false
	}
	t.asking = &tokenRequest{done: make(chan struct{})}
	return "", t.asking, true
}

func (t *tokens) end(r *tokenRequest, err error, abandoned bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asking = nil
	r.err, r.abandoned = err, abandoned
	close(r.done)
}

// ask takes the token of another process, or asks the vendor for one.
func (t *tokens) ask(ctx context.Context, refused string) (string, error) {
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

// known returns the token in memory, unless it is the refused one or has expired. The lock is held.
func (t *tokens) known(refused string) string {
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
