package mutants

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/test/torture/overlay"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func root(t *testing.T) string {
	t.Helper()
	dir, err := Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// `make mutants` runs them all; that they still fit the sources is found out at once.
func TestEveryMutantFits(t *testing.T) {
	t.Parallel()
	dir := root(t)
	for _, broker := range Brokers() {
		names := map[string]bool{}
		for _, m := range For(broker) {
			if _, err := m.Plant(dir); err != nil {
				t.Errorf("%s: %v", broker, err)
			}
			if names[m.Name] || m.Name == "" || m.Bug == "" || m.Check.Run == "" {
				t.Errorf("%s: mutant %q: the name is taken, or something is missing", broker, m.Name)
			}
			names[m.Name] = true
		}
		if len(names) < 12 {
			t.Errorf("%s: only %d mutants", broker, len(names))
		}
	}
}

// The quick ones exist, and every broker has some.
func TestQuickMutantsExist(t *testing.T) {
	t.Parallel()
	n := 0
	for _, broker := range Brokers() {
		n += len(quick[broker])
		if len(quick[broker]) < 2 {
			t.Errorf("%s has only %d quick mutants", broker, len(quick[broker]))
		}
	}
	if got := len(Quick()); got != n {
		t.Errorf("%d mutants are quick, %d are named", got, n)
	}
}

// tiny is a module with a function and two tests, of which only one looks.
func tiny(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  "module tiny\n\ngo 1.26\n",
		"tiny.go": "package tiny\n\nfunc Add(a, b int) int { return a + b }\n",
		"tiny_test.go": "package tiny\n\nimport \"testing\"\n\nfunc TestLooks(t *testing.T) {\n\tif Add(1, 2) != 3 " +
			"{\n\t\tt.Error(\"wrong sum\")\n\t}\n}\n\n" +
			"func TestSleeps(t *testing.T) { Add(1, 2) }\n\nfunc TestFails(t *testing.T) { t.Fail() }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestHunt(t *testing.T) {
	t.Parallel()
	dir := tiny(t)
	plant := func(search, replace, run string) Mutant {
		return Mutant{Name: "m", Edits: []overlay.Edit{{File: "tiny.go", Search: search, Replace: replace}},
			Check: Check{Package: ".", Run: run}}
	}
	if evidence, err := plant("a + b", "a - b", "TestLooks").Hunt(t.Context(), dir); err != nil ||
		evidence != "wrong sum" {
		t.Errorf("a bug that a test sees: %q %v", evidence, err)
	}
	if _, err := plant("a + b", "a - b", "TestSleeps").Hunt(t.Context(), dir); !errors.Is(err, ErrSurvived) {
		t.Errorf("a bug that no test sees: %v", err)
	}
	if _, err := plant("a + b", "a +", "TestLooks").Hunt(t.Context(), dir); !errors.Is(err, ErrBroken) {
		t.Errorf("a mutant that does not compile: %v", err)
	}
	if _, err := plant("a * b", "a", "TestLooks").Hunt(t.Context(), dir); !errors.Is(err, ErrBroken) {
		t.Errorf("a mutant that does not fit: %v", err)
	}
	for run, sound := range map[string]bool{"TestLooks": true, "TestFails": false, "TestNone": false} {
		if err := (Check{Package: ".", Run: run}).Sound(t.Context(), dir); (err == nil) != sound || err != nil &&
			!errors.Is(err, ErrBroken) {
			t.Errorf("check %s: %v", run, err)
		}
	}
}

// A release has nothing of the harness in it: neither its packages nor any words of the overlays.
func TestNoResidueInTheRelease(t *testing.T) {
	t.Parallel()
	dir := root(t)
	command := func(args ...string) string {
		cmd := exec.Command("go", args...)
		cmd.Dir = dir
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go %v: %v", args, err)
		}
		return string(out)
	}
	if deps := command("list", "-deps", "./cmd/ferry"); strings.Contains(deps, "test/torture") {
		t.Error("the ferry command links the torture harness")
	}
	binary := filepath.Join(t.TempDir(), "ferry")
	command("build", "-o", binary, "./cmd/ferry")
	content, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"test/torture", "mutant"} {
		if bytes.Contains(content, []byte(word)) {
			t.Errorf("the binary contains %q", word)
		}
	}
}
