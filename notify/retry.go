package notify

import (
	"time"

	"github.com/ferrymq/ferry"
)

// Retry says how often a target is tried again.
type Retry struct {
	// Retries is how often after the first try, at most 20. Defaults to 3.
	Retries int
	// Base is the first wait; each further one is twice as long, up to Cap, spread by jitter. Default to 1 and 30
	// seconds.
	Base, Cap time.Duration
	// MaxElapsed ends retries this long after the first try, unless the vendor asked for the wait. Defaults to 5
	// minutes.
	MaxElapsed time.Duration
}

// Presets of Retry.
var (
	Standard     = Retry{Retries: 3, Base: time.Second}
	Aggressive   = Retry{Retries: 5, Base: 500 * time.Millisecond} // what is important
	Conservative = Retry{Retries: 2, Base: 2 * time.Second}        // bulk
)

// NoRetry tries once.
var NoRetry = Retry{Retries: -1}

const maxRetries = 20

func (r Retry) check() error {
	if r.Retries > maxRetries || r.Base < 0 || r.Cap < 0 || r.MaxElapsed < 0 {
		return invalid("use 1 to 20 retries and positive times, or NoRetry",
			"the retries of a notification are out of range")
	}
	return nil
}

func (r Retry) resolved() Retry {
	if r.Retries == 0 {
		r.Retries = Standard.Retries
	}
	if r.Base == 0 {
		r.Base = time.Second
	}
	if r.Cap == 0 {
		r.Cap = max(30*time.Second, r.Base)
	}
	if r.MaxElapsed == 0 {
		r.MaxElapsed = 5 * time.Minute
	}
	return r
}

// attempts is how often a target is tried in all.
func (r Retry) attempts() int { return 1 + max(r.Retries, 0) }

func (r Retry) policy() ferry.RetryPolicy { return ferry.Exponential(r.Base, r.Cap) }
