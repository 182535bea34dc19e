package driver_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
	"pgregory.net/rapid"
)

func TestRetryWaits(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for _, c := range []struct {
		name   string
		policy driver.RetryPolicy
		want   []time.Duration // after attempts 1, 2, ...
	}{
		{"delays, the last one repeats", driver.RetryPolicy{Delays: []time.Duration{s, 5 * s}},
			[]time.Duration{s, 5 * s, 5 * s, 5 * s}},
		{"delays win over the exponential fields",
			driver.RetryPolicy{Delays: []time.Duration{s}, Base: 9 * s, NoJitter: true}, []time.Duration{s, s}},
		{"a negative delay is none", driver.RetryPolicy{Delays: []time.Duration{-s}}, []time.Duration{0}},
		{"doubles", driver.RetryPolicy{Base: s, NoJitter: true}, []time.Duration{s, 2 * s, 4 * s, 8 * s}},
		{"factor", driver.RetryPolicy{Base: s, Factor: 3, NoJitter: true}, []time.Duration{s, 3 * s, 9 * s}},
		{"constant", driver.RetryPolicy{Base: s, Factor: 1, NoJitter: true}, []time.Duration{s, s, s}},
		{"a factor below 1 is the default", driver.RetryPolicy{Base: s, Factor: 0.5, NoJitter: true},
			[]time.Duration{s, 2 * s}},
		{"cap", driver.RetryPolicy{Base: s, Cap: 3 * s, NoJitter: true}, []time.Duration{s, 2 * s, 3 * s, 3 * s}},
		{"default cap", driver.RetryPolicy{Base: 9 * time.Minute, NoJitter: true},
			[]time.Duration{9 * time.Minute, 10 * time.Minute}},
		{"zero", driver.RetryPolicy{}, []time.Duration{0, 0, 0}},
	} {
		for i, want := range c.want {
			if got, ok := c.policy.Next(i+1, "id", 0); got != want || !ok {
				t.Errorf("%s: after attempt %d: %v, %v; want %v", c.name, i+1, got, ok, want)
			}
		}
	}
}

func TestRetryEndsAtMaxElapsed(t *testing.T) {
	t.Parallel()
	p := driver.RetryPolicy{Delays: []time.Duration{time.Minute}, MaxElapsed: time.Hour}
	for elapsed, want := range map[time.Duration]bool{
		0: true, 59 * time.Minute: true, 59*time.Minute + 1: false, 2 * time.Hour: false,
	} {
		if wait, ok := p.Next(1, "id", elapsed); ok != want || !ok && wait != 0 {
			t.Errorf("%v after the publish: %v, %v; want %v", elapsed, wait, ok, want)
		}
	}
}

func TestRetryWaitIsBoundedAndRepeatable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := driver.RetryPolicy{
			Base:     time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "base")),
			Factor:   rapid.Float64Range(0, 10).Draw(t, "factor"),
			Cap:      time.Duration(rapid.Int64Range(0, int64(24*time.Hour)).Draw(t, "cap")),
			NoJitter: rapid.Bool().Draw(t, "no jitter"),
		}
		attempt, id := rapid.IntRange(-1, 1<<20).Draw(t, "attempt"), rapid.String().Draw(t, "id")
		wait, ok := p.Next(attempt, id, 0)
		limit := p.Cap
		if limit == 0 {
			limit = 10 * time.Minute
		}
		if !ok || wait < 0 || wait > limit {
			t.Fatalf("wait %v, %v is beyond [0, %v]", wait, ok, limit)
		}
		if again, _ := p.Next(attempt, id, 0); again != wait {
			t.Fatalf("%v, then %v: not a pure function", wait, again)
		}
	})
}

// Full jitter: over many messages the waits fill [0, wait] evenly, for each attempt anew.
func TestRetryJitterSpreads(t *testing.T) {
	t.Parallel()
	p := driver.RetryPolicy{Base: time.Second, Factor: 1}
	const n, tenths = 20_000, 10
	for attempt := 1; attempt <= 3; attempt++ {
		var bucket [tenths]int
		moved := 0
		for i := range n {
			id := fmt.Sprintf("message-%d", i)
			wait, _ := p.Next(attempt, id, 0)
			bucket[int(wait*tenths/time.Second)]++
			if next, _ := p.Next(attempt+1, id, 0); next != wait {
				moved++
			}
		}
		for i, count := range bucket {
			if count < n/tenths*8/10 || count > n/tenths*12/10 {
				t.Errorf("attempt %d: %d of %d waits in tenth %d of the range", attempt, count, n, i)
			}
		}
		if moved < n*99/100 {
			t.Errorf("only %d of %d waits change from attempt %d to the next", moved, n, attempt)
		}
	}
}

func TestRetryPolicyAtTheEdges(t *testing.T) {
	t.Parallel()
	if wait, ok := (driver.RetryPolicy{Base: -4 * time.Second, NoJitter: true}).Next(1, "id", 0); wait != 0 || !ok {
		t.Errorf("a negative base waits %v", wait)
	}
	if wait, _ := (driver.RetryPolicy{NoJitter: true}).Next(2000, "id", 0); wait != 0 {
		t.Errorf("no base waits %v at attempt 2000", wait)
	}
	huge := driver.RetryPolicy{Delays: []time.Duration{1<<63 - 1}, MaxElapsed: time.Hour}
	if wait, ok := huge.Next(1, "id", time.Minute); ok {
		t.Errorf("a wait of %v passes a limit of an hour", wait)
	}
	for name, p := range map[string]driver.RetryPolicy{
		"negative base": {Base: -1}, "negative delay": {Delays: []time.Duration{-1}}, "factor below 1": {Factor: 0.5},
		"factor NaN": {Factor: math.NaN()}, "too many delays": {Delays: make([]time.Duration, driver.MaxRetryDelays+1)},
		"negative limit": {MaxElapsed: -1},
	} {
		m := driver.Message{Topic: "t", Retry: &p}
		if err := m.Validate(1); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%s: error %v, want ErrInvalid", name, err)
		}
	}
}

// What a program makes must be meant; a message that was stored with it is read all the same.
func TestRetryPolicyThatIsNotMeant(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]driver.RetryPolicy{
		"no delays": {Delays: []time.Duration{}}, "cap below base": {Base: time.Minute, Cap: time.Second},
	} {
		if err := p.Check(); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		m := driver.Message{Topic: "t", Retry: &p}
		if err := m.ValidateStored(); err != nil {
			t.Errorf("%s, stored: %v", name, err)
		}
	}
	for name, p := range map[string]driver.RetryPolicy{
		"zero": {}, "only a cap": {Cap: time.Millisecond}, "base alone": {Base: time.Hour},
		"equal": {Base: time.Second, Cap: time.Second},
	} {
		if err := p.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (driver.RetryPolicy{Base: -1}).Check(); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("a negative base: %v", err)
	}
}
