package store

import (
	"fmt"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Rule says how many messages of one key are admitted in which time, and what happens to a key that keeps exceeding it.
type Rule struct {
	// Limit is how many messages are admitted in any Window, exactly.
	Limit  int           `json:"limit,omitempty"`
	Window time.Duration `json:"window,omitempty"`
	// Burst makes it a token bucket, which is cheaper for large limits: Limit tokens come in each Window, at most Burst
	// are saved. Over any time t, Burst + t*Limit/Window are admitted. Defaults to none: an exact sliding window.
	Burst int `json:"burst,omitempty"`
	// Unlimited admits everything; the numbers are ignored.
	Unlimited bool `json:"unlimited,omitempty"`
	// Penalty blocks keys that exceed the limit again and again. Defaults to none.
	Penalty Penalty `json:"penalty,omitzero"`
}

// Penalty blocks a key after some violations in a row. A violation is one message that is refused, however often it
// comes back, or that waits behind such a one and was published too fast. A message that passes at once ends the row.
type Penalty struct {
	// After is how many violations in a row block the key. Defaults to 0: no penalty.
	After int `json:"after,omitempty"`
	// Block is how long the first block lasts. Defaults to 1 hour.
	Block time.Duration `json:"block,omitempty"`
	// Factor is how much longer each further block lasts. Defaults to 2.
	Factor float64 `json:"factor,omitempty"`
	// Max is the longest block. Defaults to 24 hours, or Block if that is longer.
	Max time.Duration `json:"max,omitempty"`
	// History is how long after the end of its last block a key starts at Block again. Defaults to 24 hours.
	History time.Duration `json:"history,omitempty"`
}

// MaxLimit is the largest Limit without a Burst: a sliding window remembers each admission.
const MaxLimit = 1_000_000

// MaxSpan is the longest time that a rule, a block or an override may name.
const MaxSpan = 10 * 365 * 24 * time.Hour

const (
	maxBucket  = 1_000_000_000
	maxPenalty = 1_000
	day        = 24 * time.Hour
)

// Validate says what is wrong with a rule, or nil.
func (r Rule) Validate() error {
	bad := func(hint, format string, args ...any) error {
		return driver.NewError(driver.ErrInvalid, "rule: "+fmt.Sprintf(format, args...), hint, nil)
	}
	if r.Unlimited {
		return nil
	}
	switch {
	case r.Limit < 1:
		return bad("use 1 or more; to let nobody pass, block the key; to let everybody pass, set Unlimited",
			"limit %d", r.Limit)
	case r.Window < time.Millisecond || r.Window > MaxSpan:
		return bad("use 1ms or more, 10s for example", "window %v", r.Window)
	case r.Burst < 0:
		return bad("leave it zero for an exact sliding window", "burst %d is negative", r.Burst)
	case r.Burst == 0 && r.Limit > MaxLimit:
		return bad("set Burst: a token bucket counts without remembering each message",
			"limit %d is more than a sliding window remembers (%d)", r.Limit, MaxLimit)
	case r.Limit > maxBucket || r.Burst > maxBucket:
		return bad("use at most a billion", "limit %d or burst %d is too large", r.Limit, r.Burst)
	}
	return r.Penalty.validate(bad)
}

func (p Penalty) validate(bad func(hint, format string, args ...any) error) error {
	switch {
	case p.After < 0 || p.After > maxPenalty:
		return bad(fmt.Sprintf("use 1 to %d, or 0 for no penalty", maxPenalty), "penalty after %d violations", p.After)
	case p.Block < 0 || p.Max < 0 || p.History < 0:
		return bad("leave it zero for the default", "a time of the penalty is negative")
	case p.Block > MaxSpan || p.Max > MaxSpan || p.History > MaxSpan:
		return bad("block the key for good instead", "a time of the penalty is longer than 10 years")
	case p.Max > 0 && p.Max < p.Block:
		return bad("make Max at least Block", "the longest block %v is shorter than the first one %v", p.Max, p.Block)
	case p.Factor != 0 && !(p.Factor >= 1 && p.Factor <= 1000): // written so that NaN is refused
		return bad("use 1 for blocks of one length, or zero for 2", "penalty factor %v", p.Factor)
	}
	return nil
}

// resolved fills in the defaults.
func (r Rule) resolved() Rule {
	if r.Unlimited {
		return Rule{Unlimited: true}
	}
	p := &r.Penalty
	if p.After == 0 {
		*p = Penalty{}
		return r
	}
	if p.Block == 0 {
		p.Block = time.Hour
	}
	if p.Factor == 0 {
		p.Factor = 2
	}
	if p.Max == 0 {
		p.Max = max(day, p.Block)
	}
	if p.History == 0 {
		p.History = day
	}
	return r
}

// Resolve checks a rule and fills in its defaults. Stores are given resolved rules only.
func (r Rule) Resolve() (Rule, error) {
	if err := r.Validate(); err != nil {
		return Rule{}, err
	}
	return r.resolved(), nil
}

// Step is how long it takes, on average, until one more message may pass; zero if the rule is unlimited.
func (r Rule) Step() time.Duration {
	if r.Unlimited {
		return 0
	}
	return r.Window / time.Duration(r.Limit)
}

// maxFast bounds how many messages TooFast wants to see, so that stores need not remember more.
const maxFast = 128

// TooFast says when messages that wait for each other are published faster than the rule admits them: more than n
// within a span. Waiting itself proves nothing: messages also pile up while nobody handles them.
func (r Rule) TooFast() (n int, span time.Duration) {
	n = r.Limit
	if r.Burst > 0 {
		n = r.Burst
	}
	n = min(n, maxFast)
	return n, time.Duration(float64(n) * float64(r.Window) / float64(r.Limit))
}

// String describes the rule as people say it, "5 in 10s" for example.
func (r Rule) String() string {
	switch {
	case r.Unlimited:
		return "unlimited"
	case r.Limit == 0:
		return "none"
	}
	s := fmt.Sprintf("%d in %v", r.Limit, r.Window)
	if r.Burst > 0 {
		s += fmt.Sprintf(", burst %d", r.Burst)
	}
	if r.Penalty.After > 0 {
		s += fmt.Sprintf(", %d violations block %v", r.Penalty.After, r.Penalty.Block)
	}
	return s
}
