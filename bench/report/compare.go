package report

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ferrymq/ferry/bench/committed"
)

// CompareDir is where comparisons of two revisions are, among all other results: what cmd/compare -out writes, a file
// for each package.
const CompareDir = "compare"

// Comparison is what benchstat says about two revisions.
type Comparison struct {
	Package, Bench string
	// Old and New are the revisions, each a commit with its date.
	Old, New string
	Runs     string
	Machine  string
	Command  string
	// Text is benchstat's own.
	Text string
}

// fields are the lines that come before benchstat's text, in this order.
func (c *Comparison) fields() []struct {
	name  string
	value *string
} {
	return []struct {
		name  string
		value *string
	}{{"package", &c.Package}, {"bench", &c.Bench}, {"old", &c.Old}, {"new", &c.New}, {"runs", &c.Runs},
		{"machine", &c.Machine}, {"command", &c.Command}}
}

// String is the file of the comparison.
func (c Comparison) String() string {
	var b strings.Builder
	for _, f := range c.fields() {
		fmt.Fprintf(&b, "%s: %s\n", f.name, *f.value)
	}
	return b.String() + "\n" + strings.TrimRight(c.Text, "\n") + "\n"
}

// Comparisons reads all in a directory, in order of their files. One that is not there has none.
func Comparisons(dir string) ([]Comparison, error) {
	return committed.Read(dir, "*.txt", parseComparison)
}

func parseComparison(text []byte) (c Comparison, err error) {
	head, body, _ := strings.Cut(string(text), "\n\n")
	lines := strings.Split(head, "\n")
	for i, f := range c.fields() {
		var value string
		if i < len(lines) {
			value = strings.TrimPrefix(lines[i], f.name+": ")
		}
		if value == "" || value == lines[min(i, len(lines)-1)] {
			return c, fmt.Errorf("line %d does not say what %q is: cmd/compare -out writes such files", i+1, f.name)
		}
		*f.value = value
	}
	if c.Text = strings.TrimRight(body, "\n"); c.Text == "" {
		return c, errors.New("there is nothing of benchstat's behind its first lines")
	}
	return c, nil
}

// compareSection is the text of the page about comparisons.
func compareSection(all []Comparison) string {
	if len(all) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n## Two revisions of our own code\n\nWhat benchstat says about benchmarks of single packages, built " +
		"from two commits and run in turn: `make bench-compare`. The files are in `bench/results/" + CompareDir + "`.\n")
	for _, c := range all {
		fmt.Fprintf(&b, "\n### `%s`\n\nOld is %s, new is %s. Benchmarks `%s`, %s, on %s: `%s`.\n\n```text\n%s\n```\n",
			strings.TrimPrefix(c.Package, "./"), c.Old, c.New, c.Bench, c.Runs, c.Machine, c.Command, c.Text)
	}
	return b.String()
}
