package schedule

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Step is one thing to do at one time.
type Step struct {
	At     time.Duration
	Action string
	Role   string
	// Victims are numbers from 1. Empty for an action that names none.
	Victims []int
	For     time.Duration
	With    string
}

// String says it as the language would.
func (s Step) String() string {
	text := fmt.Sprintf("at %v %s", s.At.Round(time.Millisecond), s.Action)
	if s.Role != "" {
		text += fmt.Sprintf(" %s %v", s.Role, s.Victims)
	}
	if s.With != "" {
		text += " with " + s.With
	}
	if s.For > 0 {
		text += fmt.Sprintf(" for %v", s.For)
	}
	return text
}

// Plan turns clauses into steps within a time, in order. The seed decides every random choice; count says how many
// there are of each role.
func Plan(clauses []Clause, within time.Duration, seed uint64, count map[string]int) ([]Step, error) {
	var steps []Step
	for i, c := range clauses {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		until := within
		if c.Until > 0 {
			until = min(until, c.Until)
		}
		if c.Role != "" && (count[c.Role] == 0 || c.Which > count[c.Role]) {
			return nil, fmt.Errorf("in %q: there are %d of %s", c.Text, count[c.Role], c.Role)
		}
		for at := c.From; at < until; at += c.interval(random) {
			steps = append(steps, c.step(at, count[c.Role], random))
			if c.Every == 0 {
				break
			}
		}
	}
	slices.SortStableFunc(steps, func(a, b Step) int { return cmp.Compare(a.At, b.At) })
	return steps, nil
}

func (c Clause) interval(random *rand.Rand) time.Duration {
	if c.EveryMax <= c.Every {
		return c.Every
	}
	return c.Every + time.Duration(random.Int64N(int64(c.EveryMax-c.Every)))
}

func (c Clause) step(at time.Duration, count int, random *rand.Rand) Step {
	s := Step{At: at, Action: c.Action, Role: c.Role, For: c.For, With: c.With}
	switch {
	case c.Role == "":
	case c.Which == Any:
		s.Victims = []int{1 + random.IntN(count)}
	case c.Which == All:
		for n := range count {
			s.Victims = append(s.Victims, n+1)
		}
	default:
		s.Victims = []int{c.Which}
	}
	return s
}
