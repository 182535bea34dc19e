// Package mutants plants bugs and demands that tests find them. A test suite that cannot fail proves nothing.
//
// Each mutant is a small edit of the current sources, made with `go test -overlay`: no source file changes, and nothing
// of it can get into a release.
package mutants

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"

	"github.com/ferrymq/ferry/test/torture/overlay"
)

// Mutant is one planted bug and the check that must find it.
type Mutant struct {
	Name string
	// Bug says what is wrong, in one line.
	Bug   string
	Edits []overlay.Edit
	// Check is a test that passes without the bug.
	Check Check
}

// Check is a test.
type Check struct {
	Package string // from the root of the module, "./worker" for example
	Run     string // as for go test -run
	Tags    string // as for go test -tags
}

// String returns the command that runs the check.
func (c Check) String() string {
	command := fmt.Sprintf("go test %s -run '%s'", c.Package, c.Run)
	if c.Tags != "" {
		command += " -tags " + c.Tags
	}
	return command
}

// Errors of a run.
var (
	// ErrSurvived: the check passed although the bug was there.
	ErrSurvived = errors.New("NOT caught")
	// ErrBroken: the mutant or its check is no good: it does not fit, does not compile, or fails without the bug.
	ErrBroken = errors.New("broken")
)

// Plant makes the edits of a mutant in an overlay of the module in root.
func (m Mutant) Plant(root string) (*overlay.Overlay, error) {
	o, err := overlay.New(root)
	if err != nil {
		return nil, err
	}
	for _, e := range m.Edits {
		if err := o.Apply(e); err != nil {
			return nil, fmt.Errorf("mutant %s is %w: %w", m.Name, ErrBroken, err)
		}
	}
	return o, nil
}

// Hunt runs the check with the bug planted, and returns what it said when it failed.
func (m Mutant) Hunt(ctx context.Context, root string) (evidence string, err error) {
	o, err := m.Plant(root)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "ferry-mutant-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	name, err := o.Write(dir)
	if err != nil {
		return "", err
	}
	out, failed := m.Check.run(ctx, root, "-overlay="+name)
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case !failed:
		return "", fmt.Errorf("%w by %v", ErrSurvived, m.Check)
	case strings.Contains(out, "[build failed]") || strings.Contains(out, "[setup failed]"):
		return "", fmt.Errorf("mutant %s is %w: it does not compile:\n%s", m.Name, ErrBroken, out)
	}
	return symptom(out), nil
}

// Sound runs the check without any bug: it must pass, and must run something.
func (c Check) Sound(ctx context.Context, root string) error {
	out, failed := c.run(ctx, root)
	if failed {
		return fmt.Errorf("the check is %w, it fails without a bug: %v\n%s", ErrBroken, c, out)
	}
	if strings.Contains(out, "no tests to run") {
		return fmt.Errorf("the check is %w, it runs no test: %v", ErrBroken, c)
	}
	return nil
}

// run passes its flags in the environment, so that they hold for what the test itself builds too.
func (c Check) run(ctx context.Context, root string, flags ...string) (out string, failed bool) {
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-timeout=240s", "-tags", c.Tags, "-run", c.Run, c.Package)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" "+strings.Join(flags, " ")))
	text, err := cmd.CombinedOutput()
	return string(text), err != nil
}

var symptoms = []*regexp.Regexp{
	regexp.MustCompile(`VIOLATED: (.*),`),
	regexp.MustCompile(`(?m)^\s+\S+_?test\.go:\d+: (.*)$`),
	regexp.MustCompile(`(?m)^\s+\S+\.go:\d+: (.*)$`),
	regexp.MustCompile(`(?m)^(panic: .*)$`),
	regexp.MustCompile(`--- FAIL: (\S+)`),
}

// symptom finds the line that tells most about a failure.
func symptom(out string) string {
	for _, s := range symptoms {
		if m := s.FindStringSubmatch(out); m != nil {
			text := []rune(strings.TrimSpace(m[1]))
			return string(text[:min(len(text), 150)])
		}
	}
	return "it failed"
}

// Root returns the root of the module that the working directory is in.
func Root(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("go list -m: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}
