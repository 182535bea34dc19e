package deadletter

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// Strategy says how letters that died for some reasons come back by themselves. It is data where data suffices; the
// functions may be nil.
type Strategy struct {
	// Name appears in statistics. Required.
	Name string
	// Reasons and Where select the letters. Empty: every one that no strategy before it takes.
	Reasons []ferry.Reason
	Where   *Filter

	// Review leaves them to people: they never come back by themselves.
	Review bool
	// Backoff is the wait after death: its first for a letter that died once, its second for one that died again, ...
	Backoff ferry.RetryPolicy
	// AfterDeploy waits for a version other than the one it died under: see RecovererOptions.Version.
	AfterDeploy bool
	// MaxRounds is how often a letter is brought back before it is given up. Defaults to 5.
	MaxRounds int
	// TTL gives up what was published longer ago. Zero: never.
	TTL time.Duration

	// Recoverable is asked when a letter is due. False leaves it until the next pass.
	Recoverable func(ctx context.Context, l Letter) bool
	// Prepare edits the message before it goes back. An error leaves the letter until the next pass.
	Prepare Edit
	// OnSuccess is told that a letter went back to work, and OnFailure that it could not.
	OnSuccess func(ctx context.Context, l Letter)
	OnFailure func(ctx context.Context, l Letter, err error)
}

const defaultMaxRounds = 5

func (s Strategy) check() error {
	bad := func(text, hint string) error {
		return driver.NewError(driver.ErrInvalid, fmt.Sprintf("strategy %q: %s", s.Name, text), hint, nil)
	}
	switch {
	case s.Name == "":
		return bad("it has no name", "name it after the reason")
	case s.MaxRounds < 0 || s.TTL < 0:
		return bad("MaxRounds or TTL is negative", "leave it zero for the default")
	}
	for _, r := range s.Reasons {
		if r == "" {
			return bad("a reason is empty", "use those of package driver, or your own")
		}
	}
	return s.Backoff.Validate()
}

// takes reports whether the letter is one of this strategy.
func (s *Strategy) takes(ctx context.Context, l Letter) bool {
	if l.Dead == nil {
		return false
	}
	if len(s.Reasons) > 0 {
		found := false
		for _, r := range s.Reasons {
			found = found || r == l.Dead.Reason
		}
		if !found {
			return false
		}
	}
	yes, err := s.Where.Match(ctx, l)
	return yes && err == nil
}

// verdict is what becomes of a letter in one pass.
type verdict uint8

const (
	replayNow verdict = iota
	notDue            // its time comes
	notNow            // due, but not recoverable at the moment, or no deploy yet
	review            // left to people
	giveUp            // rounds or time are used up
)

// due returns when a letter comes back, and false if it never does: by now its rounds or its time are used up.
func (s *Strategy) due(l Letter, now time.Time) (at time.Time, again bool) {
	age := now.Sub(l.PublishedAt)
	wait, again := s.Backoff.Next(l.Dead.Rounds+1, l.name(), age)
	if l.Dead.Rounds >= cmp.Or(s.MaxRounds, defaultMaxRounds) || s.TTL > 0 && age > s.TTL {
		again = false
	}
	return l.Dead.DiedAt.Add(wait), again
}

// judge decides on a letter. deployed is when the present version began; zero: unknown.
func (s *Strategy) judge(ctx context.Context, l Letter, now, deployed time.Time) verdict {
	at, again := s.due(l, now)
	switch {
	case s.Review:
		return review
	case !again:
		return giveUp
	case at.After(now):
		return notDue
	case s.AfterDeploy && (deployed.IsZero() || !l.Dead.DiedAt.Before(deployed)):
		return notNow
	case s.Recoverable != nil && !s.Recoverable(ctx, l):
		return notNow
	}
	return replayNow
}
