package wecom

import (
	"context"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Sign is the signature of whatever a test likes.
func Sign(p KeyPair, timestamp, nonce, encrypted string) string {
	return pair{token: string(p.Token)}.sign(timestamp, nonce, encrypted)
}

// Tokens keeps what fetch returns, on the broker of a test.
func Tokens(kv driver.KV, fetch func(context.Context) (string, time.Duration, error)) (
	get func(ctx context.Context, refused string) (string, error), err error) {
	t, err := newTokens(kv, &Config{Corp: "corp", Secret: "secret"}, fetch)
	return t.get, err
}

// PullNow pulls an account in this goroutine.
func (p *Pipeline) PullNow(ctx context.Context, account, token string) error {
	return p.pull(ctx, account, token)
}

// PullAccount is PullNow with the verdict on what becomes of the job.
func (p *Pipeline) PullAccount(ctx context.Context, account string, now time.Time) error {
	return p.handleAccount(ctx, account, "", now)
}

// SetTurn changes how long a pull goes on.
func (p *Pipeline) SetTurn(d time.Duration) { p.turn = d }

// CheckConfig fills in the defaults.
func CheckConfig(c Config) (Config, error) {
	err := c.check()
	return c, err
}

// NormalLimit is how many messages of a normal user pass in a window.
var NormalLimit = limits[GroupNormal].Limit

// MediaCache is one of a Client.
type MediaCache = mediaCache

// NewMediaCache returns one that keeps so many bytes.
func NewMediaCache(limit int64) *MediaCache { return newMediaCache(limit) }

// Put keeps a file.
func (c *mediaCache) Put(id string, content []byte) { c.put(id, content) }

// Len is how many files are kept.
func (c *mediaCache) Len() int { return len(c.files) }
