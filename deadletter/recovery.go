package deadletter

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Plan is what recovery does with a letter next.
type Plan string

// Plans.
const (
	PlanRetry  Plan = "retry"    // it comes back by itself at NextRetry, or later
	PlanDeploy Plan = "deploy"   // it comes back with the next version of the program
	PlanReview Plan = "review"   // it is left to people
	PlanGiveUp Plan = "given_up" // its rounds or its time are used up, or will be by then
)

// Recovery is what a Recoverer does with a letter next. It is worked out from the strategies and the letter, and stored
// nowhere.
type Recovery struct {
	Plan Plan
	// Strategy is the name of the one that takes it. Empty: none does.
	Strategy string
	// NextRetry is the earliest time of a PlanRetry. It may be later: while the key is blocked, behind an earlier
	// letter of the key, or because nobody runs a Recoverer.
	NextRetry time.Time
	// Priority says which of those that are due come back first: 10 is the first, 1 the last.
	Priority int
}

// RecoveryOf returns what these strategies do with a dead letter next; nil means the shipped ones. Of a parse error it
// is PlanReview.
func RecoveryOf(ctx context.Context, l Letter, strategies []Strategy) Recovery {
	if strategies == nil {
		strategies = Strategies(nil)
	}
	return recoveryOf(ctx, l, strategies, nil, time.Now())
}

// Recovery returns what this recoverer does with a letter next.
func (r *Recoverer) Recovery(ctx context.Context, l Letter) Recovery {
	return recoveryOf(ctx, l, r.o.Strategies, r.o.VIP, time.Now())
}

func recoveryOf(ctx context.Context, l Letter, strategies []Strategy, vip func(Letter) bool, now time.Time) Recovery {
	out := Recovery{Plan: PlanReview, Priority: priorityOf(l, vip)}
	i := slices.IndexFunc(strategies, func(s Strategy) bool { return s.takes(ctx, l) })
	if i < 0 {
		return out
	}
	s := &strategies[i]
	if out.Strategy = s.Name; s.Review {
		return out
	}
	at, again := s.due(l, now)
	if again && at.After(now) {
		at, again = s.due(l, at) // what is decided then
	}
	switch {
	case !again:
		out.Plan = PlanGiveUp
	case s.AfterDeploy:
		out.Plan = PlanDeploy
	default:
		out.Plan, out.NextRetry = PlanRetry, at
	}
	return out
}

// The recovery priority of a letter: where it begins, what changes it, and its bounds.
const (
	plainPriority   = 5
	vipPriority     = 3
	blockedPriority = -3
	limitedPriority = -1
	leastPriority   = 1
	mostPriority    = 10
)

// priorityOf returns the recovery priority of a letter. Without vip those are important that were published with a high
// priority.
func priorityOf(l Letter, vip func(Letter) bool) int {
	n := plainPriority
	important := l.Message != nil && l.Message.Priority >= driver.High
	if vip != nil {
		important = vip(l)
	}
	if important {
		n += vipPriority
	}
	if l.Dead != nil {
		switch l.Dead.Reason {
		case driver.ReasonKeyBlocked:
			n += blockedPriority
		case driver.ReasonRateLimited:
			n += limitedPriority
		}
	}
	return min(max(n, leastPriority), mostPriority)
}

// prioritise sorts what is due by priority. Letters of one key stay in their order, and come with the most important of
// them.
func prioritise(due []candidate, vip func(Letter) bool) {
	keys := map[string]int{}
	for i := range due {
		c := &due[i]
		c.priority = priorityOf(c.letter, vip)
		if key := c.letter.key(); key != "" {
			keys[key] = max(keys[key], c.priority)
		}
	}
	for i := range due {
		c := &due[i]
		c.priority = max(c.priority, keys[c.letter.key()])
	}
	slices.SortStableFunc(due, func(a, b candidate) int { return cmp.Compare(b.priority, a.priority) })
}
