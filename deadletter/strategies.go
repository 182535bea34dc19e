package deadletter

import (
	"context"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Blocked reports whether the key of a letter is blocked or limited at the moment. A guard knows.
type Blocked func(ctx context.Context, l Letter) bool

// Strategies are the shipped ones: one for each reason that Ferry gives, and review for those of users. Blocked may be
// nil.
//
//	rate_limited                  1, 2, 4 min ... 1 h, never while the key is blocked      10 rounds   24 h
//	key_blocked                   every hour, never while the key is blocked               24 rounds    7 days
//	breaker_open                  30 s, 1, 2 min ... 10 min                                10 rounds   24 h
//	queue_full, overload          30 s, 1, 2 min ... 30 min                                10 rounds   24 h
//	timeout, downstream_error     1, 2, 4 min ... 1 h                                       5 rounds   24 h
//	max_attempts                  5, 20, 80 min ... 6 h                                     3 rounds    3 days
//	panic                         after a deploy                                            3 rounds
//	max_deliveries, invalid_message, fatal, rejected, expired, and any other: review by people
func Strategies(blocked Blocked) []Strategy {
	free := func(ctx context.Context, l Letter) bool { return blocked == nil || !blocked(ctx, l) }
	day := 24 * time.Hour
	return []Strategy{
		{Name: "rate_limited", Reasons: []driver.Reason{driver.ReasonRateLimited}, Backoff: doubling(time.Minute, time.Hour),
			MaxRounds: 10, TTL: day, Recoverable: free},
		{Name: "key_blocked", Reasons: []driver.Reason{driver.ReasonKeyBlocked}, Backoff: doubling(time.Hour, time.Hour),
			MaxRounds: 24, TTL: 7 * day, Recoverable: free},
		{Name: "breaker_open", Reasons: []driver.Reason{driver.ReasonBreakerOpen},
			Backoff: doubling(30*time.Second, 10*time.Minute), MaxRounds: 10, TTL: day},
		{Name: "overload", Reasons: []driver.Reason{driver.ReasonQueueFull, driver.ReasonOverload},
			Backoff: doubling(30*time.Second, 30*time.Minute), MaxRounds: 10, TTL: day},
		{Name: "transient", Reasons: []driver.Reason{driver.ReasonTimeout, driver.ReasonDownstream},
			Backoff: doubling(time.Minute, time.Hour), MaxRounds: 5, TTL: day},
		{Name: "max_attempts", Reasons: []driver.Reason{driver.ReasonMaxAttempts},
			Backoff:   driver.RetryPolicy{Base: 5 * time.Minute, Factor: 4, Cap: 6 * time.Hour, NoJitter: true},
			MaxRounds: 3, TTL: 3 * day},
		{Name: "panic", Reasons: []driver.Reason{driver.ReasonPanic}, AfterDeploy: true, MaxRounds: 3},
		{Name: "review", Review: true},
	}
}

func doubling(base, limit time.Duration) driver.RetryPolicy {
	return driver.RetryPolicy{Base: base, Cap: limit, NoJitter: true}
}
