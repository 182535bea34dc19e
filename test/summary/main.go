// Command summary reads what `go test -json` says, shows it as `go test` does, and at the end how long each package
// took, the longest tests, and what tests say they did again because the machine stalled. It fails when a test did.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

func main() {
	if err := run(os.Stdin, os.Stdout, time.Now()); err != nil {
		fmt.Fprintln(os.Stderr, "summary:", err)
		os.Exit(1)
	}
}

// event is a line of `go test -json`.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64 // seconds
	ImportPath                    string  // of a build
}

// timed is something that took time.
type timed struct {
	name string
	took float64
}

// Lines at the end: so many of the longest, packages that took longer than that.
const (
	longestTests = 10
	shortPackage = 1.0
	retried      = "drivertest: tried again"
)

// summary collects events.
type summary struct {
	out             io.Writer
	output          map[string][]string // by package and test, until it is known how it ends
	packages, tests []timed
	failed          int
	notes           []string
}

func run(in io.Reader, out io.Writer, start time.Time) error {
	s := &summary{out: out, output: map[string][]string{}}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			s.say("%s\n", lines.Text()) // of the go command itself
			continue
		}
		s.add(e)
	}
	if err := lines.Err(); err != nil {
		return err
	}
	s.report(time.Since(start))
	if s.failed > 0 {
		return fmt.Errorf("%d failed", s.failed)
	}
	return nil
}

// say writes: who reads a closed pipe is told by the exit status.
func (s *summary) say(format string, args ...any) { _, _ = fmt.Fprintf(s.out, format, args...) }

func (s *summary) add(e event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "output":
		if strings.Contains(e.Output, retried) {
			s.notes = append(s.notes, e.Package+" "+e.Test+": "+strings.TrimSpace(e.Output))
		}
		s.output[key] = append(s.output[key], e.Output)
	case "build-output":
		s.say("%s", e.Output)
	case "build-fail":
		s.failed++
	case "fail":
		s.failed++
		if e.Test == "" {
			s.unfinished(e.Package)
		}
		s.say("%s", strings.Join(s.output[key], ""))
		s.ended(e, key)
	case "pass", "skip":
		if e.Test == "" && len(s.output[key]) > 0 {
			s.say("%s", s.output[key][len(s.output[key])-1]) // ok, and how long
		}
		s.ended(e, key)
	}
}

// unfinished shows what tests said that never ended: a process that died says why in one of them.
func (s *summary) unfinished(pkg string) {
	for _, key := range slices.Sorted(maps.Keys(s.output)) {
		if test, ok := strings.CutPrefix(key, pkg+" "); ok && test != "" {
			s.say("%s of %s did not end:\n%s", test, pkg, strings.Join(s.output[key], ""))
			delete(s.output, key)
		}
	}
}

func (s *summary) ended(e event, key string) {
	delete(s.output, key)
	switch {
	case e.Test == "":
		s.packages = append(s.packages, timed{e.Package, e.Elapsed})
	case !strings.Contains(e.Test, "/"):
		s.tests = append(s.tests, timed{e.Package + "." + e.Test, e.Elapsed})
	}
}

func (s *summary) report(took time.Duration) {
	all := 0.0
	for _, p := range s.packages {
		all += p.took
	}
	s.say("\nlongest packages:\n")
	for _, p := range longest(s.packages) {
		if p.took >= shortPackage {
			s.say("  %7.1fs  %s\n", p.took, p.name)
		}
	}
	s.say("longest tests:\n")
	for _, t := range longest(s.tests)[:min(len(s.tests), longestTests)] {
		s.say("  %7.1fs  %s\n", t.took, t.name)
	}
	s.say("tried again because the machine stalled: %d\n", len(s.notes))
	for _, n := range s.notes {
		s.say("  %s\n", n)
	}
	s.say("tests: %d packages, %.0fs one after the other, %.0fs together, %d failed\n", len(s.packages), all,
		took.Seconds(), s.failed)
}

func longest(ts []timed) []timed {
	ts = slices.Clone(ts)
	slices.SortStableFunc(ts, func(a, b timed) int { return int(1000 * (b.took - a.took)) })
	return ts
}
