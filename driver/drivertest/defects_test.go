package drivertest

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ferrymq/ferry/driver"
)

// TestDefectsAreCaught demands that each defect makes each of its cases fail, and says how.
func TestDefectsAreCaught(t *testing.T) { RunDefects(t, memoryHarness()) }

// TestHistoriesCatchDefects demands that a few random histories notice what no case was written for.
func TestHistoriesCatchDefects(t *testing.T) {
	for _, f := range Defects() {
		if !f.History {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			h := f.Break(memoryHarness())
			for seed := range uint64(30) {
				c := Case{Name: "history", Run: randomScript(seed, 400).run}
				if complaints := Catch(t, h, c); len(complaints) > 0 {
					t.Logf("caught by history %d: %s", seed, firstLine(complaints[0]))
					return
				}
			}
			t.Error("30 histories of 400 steps do not notice it")
		})
	}
}

func randomScript(seed uint64, steps int) script {
	r := rand.New(rand.NewPCG(seed, 0))
	s := make(script, steps)
	for i := range s {
		s[i] = r.Uint64()
	}
	return s
}

// TestSoundDriverPasses is the other half of the proof: without a defect nothing is noticed.
func TestSoundDriverPasses(t *testing.T) {
	t.Parallel()
	h := Defect{Wrap: func(d driver.Driver) driver.Driver { return &broken{Driver: d} }}.Break(memoryHarness())
	for _, c := range append(Cases(), Case{Name: "stress", Run: stress}) {
		if complaints := Catch(t, h, c); len(complaints) > 0 {
			t.Errorf("case %q complains of a sound driver: %s", c.Name, complaints[0])
		}
	}
	for seed := range uint64(10) {
		if complaints := Catch(t, h, Case{Name: "history", Run: randomScript(seed, 400).run}); len(complaints) > 0 {
			t.Errorf("history %d complains of a sound driver: %s", seed, complaints[0])
		}
	}
}

// TestCaseNamesAreUnique keeps the table usable with -run.
func TestCaseNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Cases() {
		if seen[c.Name] || c.Run == nil || !strings.Contains(c.Name, "/") {
			t.Errorf("case %q is listed twice, has no function or no kind", c.Name)
		}
		seen[c.Name] = true
	}
	if n := len(seen); n < 100 {
		t.Errorf("only %d cases", n)
	}
}
