package drivertest

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// RunDefects demands that every defect, put on a driver that passes the suite, makes each of its cases fail.
// Harness.Only chooses among them.
func RunDefects(t *testing.T, h Harness) {
	h.Patience = cmp.Or(h.Patience, 5*time.Second) // what a defect swallows never comes
	all := Cases()
	for _, f := range Defects() {
		f.Cases = slices.DeleteFunc(slices.Clone(f.Cases),
			func(name string) bool { return h.Only != nil && !h.Only.MatchString(name) })
		if len(f.Cases) == 0 {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			broken := f.Break(h)
			for _, name := range f.Cases {
				i := slices.IndexFunc(all, func(c Case) bool { return c.Name == name })
				if i < 0 {
					t.Fatalf("there is no case %q", name)
				}
				ofHistory := strings.HasPrefix(name, "reset/") || name == keptCase
				if ofHistory && h.Want.History == driver.HistoryNone || name == endingCase && !h.Want.Endings {
					continue // it keeps nothing that could be lost
				}
				complaints := Catch(t, broken, all[i])
				if len(complaints) == 0 {
					t.Errorf("case %q does not notice it", name)
					continue
				}
				t.Logf("caught by %q: %s", name, firstLine(complaints[0]))
			}
		})
	}
}

// keptCase is about messages that are done and kept.
const keptCase = "delete/of what is kept"

func firstLine(s string) string { line, _, _ := strings.Cut(s, "\n"); return line }
