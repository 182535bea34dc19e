package drivertest

import (
	"context"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Harness tells the suite how to open one driver and what to expect of it.
type Harness struct {
	// Open returns a driver with a fresh, empty backend or namespace of its own. The suite closes it. Required.
	Open func(t testing.TB) driver.Driver
	// Want pins every capability, so that nothing can hide behind ErrUnsupported. Required.
	Want driver.Capabilities
	// PlantRaw puts bytes that cannot be decoded into a topic, behind the driver's back. Required.
	PlantRaw func(ctx context.Context, d driver.Driver, topic string, raw []byte) error
	// Reopen closes d and opens the same backend again, as a restart does. Required where anything survives one.
	Reopen func(t testing.TB, d driver.Driver) driver.Driver
	// Beside opens the backend of d once more while d stays open, as another process does. Nil where a store belongs to
	// one process.
	Beside func(t testing.TB, d driver.Driver) driver.Driver
	// Only are the cases to run, without histories and stress, for a variant of a driver that runs all elsewhere. Nil runs
	// everything.
	Only *regexp.Regexp
	// Except are cases that are not run, for a variant of a driver that they are not about. Nil leaves out none.
	Except *regexp.Regexp
	// Virtual says that the driver keeps time with package time alone, so that each case runs in a synctest bubble.
	Virtual bool
	// Steps is the length of the random histories in all. Defaults to 100,000, in virtual time, and 1,000 otherwise.
	// The environment variable FERRY_HISTORY_STEPS overrides it.
	Steps int
	// Late is how late something due may come. Defaults to 1 ms in virtual time, and 2 s otherwise.
	Late time.Duration
	// Patience is how long the suite waits for what must happen. Defaults to 30 s.
	Patience time.Duration

	seed    uint64                              // of everything random but the histories, whose seed rapid prints
	stalled func(since time.Time) time.Duration // measures the machine, in real time
	try     int                                 // how often a case was tried before, in vain
}

// resolved fills in the defaults, and refuses a harness that cannot judge.
func (h Harness) resolved(t testing.TB) Harness {
	t.Helper()
	if h.Open == nil || h.PlantRaw == nil || h.Want.Driver == "" {
		t.Fatal("drivertest: Harness.Open, Harness.Want and Harness.PlantRaw are required")
	}
	if h.Reopen == nil && h.Want.Durability > driver.InMemory {
		t.Fatalf("drivertest: Harness.Reopen is required, since %s says that a publish is %s", h.Want.Driver,
			h.Want.Durability)
	}
	h.seed = rand.Uint64() // not from the time, which begins the same in every bubble
	if n, set := fromEnv(t, "FERRY_SEED", func(s string) (uint64, error) { return strconv.ParseUint(s, 10, 64) }); set {
		h.seed = n
	}
	if h.Steps == 0 {
		h.Steps = 1_000
		if h.Virtual {
			h.Steps = 100_000
		}
	}
	if n, set := fromEnv(t, "FERRY_HISTORY_STEPS", func(s string) (float64,
		error) {
		return strconv.ParseFloat(s, 64)
	}); set {
		h.Steps = int(n)
	}
	if h.Late == 0 {
		h.Late = 2 * time.Second
		if h.Virtual {
			h.Late = time.Millisecond
		}
	}
	if h.Patience == 0 {
		h.Patience = 30 * time.Second
	}
	return h
}

// fromEnv reads a number from the environment, which may be set for one run of the tests.
func fromEnv[N any](t testing.TB, name string, parse func(string) (N, error)) (n N, set bool) {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return n, false
	}
	n, err := parse(text)
	if err != nil {
		t.Fatalf("drivertest: %s=%q is not a number", name, text)
	}
	return n, true
}

// Run runs the whole suite: every case, the random histories and the stress run, each with a driver of its own.
func Run(t *testing.T, h Harness) {
	h = h.resolved(t).measured(t)
	spoilt := new(retries)
	for _, c := range Cases() {
		if h.Only != nil && !h.Only.MatchString(c.Name) || h.Except != nil && h.Except.MatchString(c.Name) {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			h.judge(t, c, spoilt)
		})
	}
	if h.Only != nil {
		return
	}
	t.Run("history", func(t *testing.T) {
		t.Parallel()
		h.histories(t)
	})
	t.Run("stress", func(t *testing.T) {
		t.Parallel()
		h.judge(t, Case{Name: "stress", Run: stress}, spoilt)
	})
}

// judge runs one case.
func (h Harness) judge(t *testing.T, c Case, spoilt *retries) {
	t.Helper()
	if !h.Virtual {
		h.patiently(t, c, spoilt)
		return
	}
	skipped := false
	synctest.Test(t, func(inner *testing.T) {
		defer func() { skipped = inner.Skipped() }()
		h.run(inner, c)
	})
	if skipped { // which says so, but counts as passed
		t.SkipNow()
	}
}

// inTime runs f in virtual time where the driver can, and in real time otherwise.
func (h Harness) inTime(t *testing.T, f func(testing.TB)) {
	if !h.Virtual {
		f(t)
		return
	}
	synctest.Test(t, func(t *testing.T) { f(t) })
}

// run runs one case against a fresh driver. What holds always is checked after each.
func (h Harness) run(tb testing.TB, c Case) {
	t := newT(tb, h)
	c.Run(t)
	t.balanced()
}

// Catch runs one case and returns its complaints instead of failing t. None means that the driver passed.
func Catch(t *testing.T, h Harness, c Case) []string {
	h = h.resolved(t)
	var complaints []string
	h.inTime(t, func(tb testing.TB) {
		complaints = record(tb, func(r testing.TB) { h.run(r, c) })
	})
	return complaints
}
