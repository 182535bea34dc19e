package wecom

import (
	"context"
	"time"
)

// Sign is the signature of whatever a test likes.
func Sign(p KeyPair, timestamp, nonce, encrypted string) string {
	return pair{token: string(p.Token)}.sign(timestamp, nonce, encrypted)
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
