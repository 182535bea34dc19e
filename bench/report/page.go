package report

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ferrymq/ferry/bench/growth"
	"github.com/ferrymq/ferry/bench/periodic"
)

// Page is docs/benchmarks.md, made from all that a directory of results has.
func Page(results string) (string, error) {
	reports, err1 := ReadAll(results)
	ticks, err2 := periodic.Read(filepath.Join(results, periodic.File))
	grown, err3 := growth.Read(filepath.Join(results, growth.Dir))
	compared, err4 := Comparisons(filepath.Join(results, CompareDir))
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return "", err
	}
	return Docs(reports, ticks.Section(), growth.Section(grown), compareSection(compared)), nil
}

// What is between these lines of docs/performance.md is made from the results of growth, once there are any.
const (
	growthBegin = "<!-- growth: made from bench/results/growth by `go run ./cmd/bench -docs` -->\n"
	growthEnd   = "<!-- end of growth -->\n"
)

// Performance is a text of docs/performance.md with the table of growth that a directory of results has. Without such
// results the text stays as it is.
func Performance(text, results string) (string, error) {
	before, rest, ok1 := strings.Cut(text, growthBegin)
	_, after, ok2 := strings.Cut(rest, growthEnd)
	if !ok1 || !ok2 {
		return "", fmt.Errorf("the page of performance lacks the lines %q and %q", growthBegin, growthEnd)
	}
	grown, err := growth.Read(filepath.Join(results, growth.Dir))
	if err != nil || len(grown) == 0 {
		return text, err
	}
	return before + growthBegin + growth.Summary(grown) + growthEnd + after, nil
}

// WritePages writes the page of benchmarks, and the table in the page of performance beside it, if there is one.
func WritePages(results, page string) error {
	text, err := Page(results)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(page), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
		return err
	}
	path := filepath.Join(filepath.Dir(page), "performance.md")
	old, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if text, err = Performance(string(old), results); err != nil || text == string(old) {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}
