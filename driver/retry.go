package driver

import (
	"fmt"
	"hash/fnv"
	"math"
	"time"
)

// RetryPolicy says when a failed message is tried again. It is data, so that it can travel with a message, and Next
// is a pure function. Either Delays, or the exponential fields.
type RetryPolicy struct {
	// Delays are the waits before the 2nd, 3rd, ... attempt; the last one repeats.
	Delays []time.Duration `json:"delays,omitempty"`

	// Base is the wait before the second attempt; each further one is Factor times longer, up to Cap.
	Base   time.Duration `json:"base,omitempty"`
	Factor float64       `json:"factor,omitempty"` // Defaults to 2.
	Cap    time.Duration `json:"cap,omitempty"`    // Defaults to 10 minutes.
	// NoJitter waits exactly; otherwise each wait is spread over [0, wait] (full jitter), so that many failures at
	// once do not return at once.
	NoJitter bool `json:"no_jitter,omitempty"`

	// MaxElapsed ends retries that would start later than this after the publish. Zero: no limit.
	MaxElapsed time.Duration `json:"max_elapsed,omitempty"`
}

// Next returns the wait after failed attempt number attempt (1 is the first) of the message id, published elapsed
// ago. It reports false when MaxElapsed forbids another try.
func (p RetryPolicy) Next(attempt int, id string, elapsed time.Duration) (time.Duration, bool) {
	wait := p.wait(attempt, id)
	if p.MaxElapsed > 0 && wait > p.MaxElapsed-elapsed { // not elapsed+wait, which may overflow
		return 0, false
	}
	return wait, true
}

func (p RetryPolicy) wait(attempt int, id string) time.Duration {
	attempt = max(attempt, 1)
	if len(p.Delays) > 0 {
		return max(0, p.Delays[min(attempt, len(p.Delays))-1])
	}
	factor, limit := p.Factor, p.Cap
	if factor < 1 {
		factor = 2
	}
	if limit <= 0 {
		limit = 10 * time.Minute
	}
	if p.Base <= 0 {
		return 0
	}
	wait := limit
	if f := float64(p.Base) * math.Pow(factor, float64(attempt-1)); f < float64(limit) {
		wait = time.Duration(f)
	}
	if p.NoJitter {
		return wait
	}
	return time.Duration(float64(wait) * spread(id, attempt))
}

// MaxRetryDelays is the most Delays a policy may list, so that one that travels with a message stays small.
const MaxRetryDelays = 100

// Validate says what is wrong with a policy, or nil.
func (p RetryPolicy) Validate() error {
	bad := func(text, hint string) error { return NewError(ErrInvalid, "retry policy: "+text, hint, nil) }
	for _, d := range p.Delays {
		if d < 0 {
			return bad(fmt.Sprintf("delay %v is negative", d), "use zero to retry at once")
		}
	}
	switch {
	case len(p.Delays) > MaxRetryDelays:
		return bad(fmt.Sprintf("%d delays are too many", len(p.Delays)),
			fmt.Sprintf("list at most %d; the last one repeats", MaxRetryDelays))
	case p.Base < 0 || p.Cap < 0 || p.MaxElapsed < 0:
		return bad("a time is negative", "use zero for the default")
	case p.Factor != 0 && !(p.Factor >= 1 && p.Factor <= 1000): // written so that NaN is refused
		return bad(fmt.Sprintf("factor %v is out of range", p.Factor), "use 1 to 1000, or zero for 2")
	}
	return nil
}

// Check says what is wrong with a policy that a program makes, or nil: what Validate does, and what would be ignored. A
// stored one may have it.
func (p RetryPolicy) Check() error {
	switch err := p.Validate(); {
	case err != nil:
		return err
	case p.Delays != nil && len(p.Delays) == 0:
		return NewError(ErrInvalid, "retry policy: the delays are none",
			"list at least one, or leave the policy out for the default", nil)
	case p.Cap > 0 && p.Base > p.Cap:
		return NewError(ErrInvalid, fmt.Sprintf("retry policy: the first wait %v is longer than the longest, %v", p.Base,
			p.Cap), "give the shorter one first", nil)
	}
	return nil
}

// spread maps a message and an attempt to [0, 1): random over messages, the same on every instance.
func spread(id string, attempt int) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	x := h.Sum64() ^ uint64(attempt)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9 // the finalizer of splitmix64: fnv alone leaves the high bits alike
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	return float64(x>>11) / (1 << 53)
}
