package soak

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/driver/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// series has a sample every second for ten minutes.
func series(value func(at time.Duration) float64) *Series {
	s := &Series{Name: "figure", Unit: "MiB", PerHour: 1, Noise: 2}
	for at := time.Duration(0); at < 10*time.Minute; at += time.Second {
		s.Points = append(s.Points, Point{at, value(at)})
	}
	return s
}

func TestGrowth(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 1))
	for name, c := range map[string]struct {
		value func(time.Duration) float64
		grows bool
	}{
		"flat":                    {func(time.Duration) float64 { return 50 }, false},
		"noise":                   {func(time.Duration) float64 { return 50 + 10*random.Float64() }, false},
		"a saw, as of a heap":     {func(at time.Duration) float64 { return 50 + math.Mod(at.Seconds(), 37) }, false},
		"grows in the warm-up":    {func(at time.Duration) float64 { return min(at.Seconds(), 100) }, false},
		"leaks 60 MiB an hour":    {func(at time.Duration) float64 { return 50 + 60*at.Hours() + random.Float64() }, true},
		"falls":                   {func(at time.Duration) float64 { return 50 - 60*at.Hours() }, false},
		"less than is forgiven":   {func(at time.Duration) float64 { return 50 + 0.5*at.Hours() }, false},
		"leaks, but not for long": {func(at time.Duration) float64 { return 50 + 10*at.Hours() }, false},
	} {
		s := series(c.value)
		if tr := s.Trend(WarmUp(10 * time.Minute)); s.Grows(tr) != c.grows {
			t.Errorf("%s: grows is %v (%+v)", name, !c.grows, tr)
		}
	}
}

func TestWarmUp(t *testing.T) {
	t.Parallel()
	for run, want := range map[time.Duration]time.Duration{time.Minute: 36 * time.Second,
		4 * time.Minute: 75 * time.Second, time.Hour: 15 * time.Minute} {
		if got := WarmUp(run); got != want {
			t.Errorf("of %v: %v, want %v", run, got, want)
		}
	}
	if tr := (&Series{}).Trend(0); tr != (Trend{}) {
		t.Errorf("a trend of nothing: %+v", tr)
	}
}

func TestPage(t *testing.T) {
	t.Parallel()
	leak := series(func(at time.Duration) float64 { return 60 * at.Hours() })
	leak.Name = "<leak>"
	page := Page("soak of memory", []*Series{leak, {Name: "nothing"}}, time.Minute)
	for _, want := range []string{"&lt;leak&gt;: GROWS (+60.00 MiB/h", "<polyline", "too few samples", "steady"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "<leak>") {
		t.Error("a name is not escaped")
	}
}

func TestSample(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, err := memory.New(t.Context(), memory.Options{})
		if err != nil {
			t.Fatal(err)
		}
		probes := Probes(d, "nothing-there")
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second+time.Millisecond)
		defer cancel()
		if err := Sample(ctx, probes, time.Second); err != nil {
			t.Fatal(err)
		}
		for _, p := range probes {
			if len(p.Points) != 10 {
				t.Errorf("%s: %d samples, want 10", p.Name, len(p.Points))
			}
		}
		broken := []Probe{{Series{Name: "broken"}, func(context.Context) (float64, error) { return 0, errors.New("no") }}}
		if err := Sample(t.Context(), broken, time.Second); err == nil || !strings.Contains(err.Error(), "broken") {
			t.Errorf("a probe that fails: %v", err)
		}
		if err := d.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// lateContext has a deadline that is over, and does not know it yet.
type lateContext struct{ context.Context }

func (lateContext) Deadline() (time.Time, bool) { return time.Now().Add(-time.Millisecond), true }

// A probe whose connection ends with the time of the run is no failure of the run.
func TestTheEndIsNoFailure(t *testing.T) {
	t.Parallel()
	failing := []Probe{{Series{Name: "connection"}, func(context.Context) (float64,
		error) {
		return 0, errors.New("i/o timeout")
	}}}
	if err := Sample(lateContext{t.Context()}, failing, time.Millisecond); err != nil {
		t.Errorf("at the end: %v", err)
	}
	if err := Sample(t.Context(), failing, time.Millisecond); err == nil {
		t.Error("in the middle a probe that fails is a failure")
	}
}
