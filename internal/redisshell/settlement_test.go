package redisshell_test

import (
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/envelope"
	"github.com/ferrymq/ferry/internal/redisshell"
)

// TestOutcome: each has a letter of its own, which the scripts of both drivers know.
func TestOutcome(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, x := range []driver.Settlement{{Outcome: driver.Ack}, {Outcome: driver.Retry}, {Outcome: driver.Dead},
		{Outcome: driver.Release}, {Outcome: driver.Release, Unseen: true}, {Outcome: driver.Drop}} {
		letter := redisshell.Outcome(&x)
		if len(letter) != 1 || seen[letter] {
			t.Errorf("%+v is %q, as another is", x, letter)
		}
		seen[letter] = true
	}
}

// TestFailure: only what failed has one, and the script says when.
func TestFailure(t *testing.T) {
	t.Parallel()
	failure := &driver.Failure{At: time.Now(), Attempt: 3, Reason: "timeout", Error: "no answer"}
	for _, o := range []driver.Outcome{driver.Ack, driver.Release, driver.Drop} {
		if text := redisshell.Failure(&driver.Settlement{Outcome: o, Failure: failure}, "w"); text != nil {
			t.Errorf("%v with a failure: %q", o, text)
		}
	}
	if text := redisshell.Failure(&driver.Settlement{Outcome: driver.Retry}, "w"); text != nil {
		t.Errorf("a retry without a failure: %q", text)
	}
	text := redisshell.Failure(&driver.Settlement{Outcome: driver.Dead, Failure: failure}, "w")
	got, err := envelope.DecodeHistory(text)
	if err != nil || len(got) != 1 || !got[0].At.IsZero() || got[0].Attempt != 0 || got[0].Instance != "w" ||
		got[0].Error != "no answer" {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestSteps: a lane with twice the weight moves half as far, so that it is claimed from twice as often.
func TestSteps(t *testing.T) {
	t.Parallel()
	if s := redisshell.Steps(driver.SubscribeOptions{Weights: [4]int{8, 4, 2, 1}}); s[0].(int)*8 != s[3].(int) ||
		s[1].(int)*2 != s[2].(int) {
		t.Errorf("steps %v", s)
	}
	if s := redisshell.Steps(driver.SubscribeOptions{StrictPriority: true, Weights: [4]int{8, 4, 2, 1}}); s[0] != "" {
		t.Errorf("steps of strict priorities %v", s)
	}
}

func TestShare(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n     int64
		parts int
		want  int64
	}{{0, 4, 0}, {8, 4, 2}, {9, 4, 3}, {1, 4, 1}, {7, 1, 7}} {
		if got := redisshell.Share(c.n, c.parts); got != c.want {
			t.Errorf("%d in %d parts: %d each, want %d", c.n, c.parts, got, c.want)
		}
	}
}
