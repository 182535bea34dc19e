package server

import (
	"crypto/rand"
	"sync"
	"time"

	"github.com/ferrymq/ferry/auth"
)

// onceFor is how long the one-time login is good after the start.
const onceFor = 15 * time.Minute

// once is a login that is good one time, for whoever sees the terminal of the server.
type once struct {
	mu    sync.Mutex
	code  auth.Secret
	until time.Time
}

func newOnce(now time.Time) *once {
	return &once{code: auth.NewSecret(rand.Text()), until: now.Add(onceFor)}
}

// use reports whether a code is the one, which is not good any more then.
func (o *once) use(code string, now time.Time) bool {
	if o == nil {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.code.Empty() || now.After(o.until) || !o.code.Equal(code) {
		return false
	}
	o.code = auth.Secret{}
	return true
}

// local is who used the one-time login.
func local() *auth.Identity {
	return &auth.Identity{Name: "terminal", Kind: auth.KindLocal, Grants: []auth.Grant{{Role: auth.Administrator}}}
}
