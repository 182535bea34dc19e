package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

func TestHabits(t *testing.T) {
	t.Parallel()
	sources := repository(t)
	for _, s := range sources {
		report(t, checkInit(s))
		report(t, checkSleep(s))
		report(t, checkUnfinished(s))
		report(t, checkPrivate(s))
	}
	report(t, checkLeaks(sources))
}

func TestExceptionsNamePackages(t *testing.T) {
	t.Parallel()
	sources := repository(t)
	for _, table := range []map[string]string{initAllowed, sleepAllowed, leakAllowed} {
		for pattern, reason := range table {
			named := slices.ContainsFunc(sources, func(s Source) bool { return matches(s.Package(), []string{pattern}) })
			if !named || reason == "" {
				t.Errorf("the exception for %s matches no package or has no reason", pattern)
			}
		}
	}
}

// read is done once: parsing everything takes seconds under the race detector.
var read = sync.OnceValues(func() ([]Source, error) { return readSources(root) })

func repository(t *testing.T) []Source {
	t.Helper()
	sources, err := read()
	if err != nil {
		t.Fatal(err)
	}
	if len(sources) < 10 {
		t.Fatalf("found only %d files: the test looks in the wrong place", len(sources))
	}
	return sources
}

func TestHabitsCanFail(t *testing.T) {
	t.Parallel()
	const todo = "TO" + "DO"
	tests := []struct {
		name, path, text string
		check            func(Source) []string
		broken           string
	}{
		{"init", "a/a.go", "package a\n\nfunc init() {}\n", checkInit, "a/a.go:3: no init"},
		{"init method", "a/a.go", "package a\n\nfunc (x T) init() {}\n", checkInit, ""},
		{"init in a test", "a/a_test.go", "package a\n\nfunc init() {}\n", checkInit, ""},
		{"sleep", "a/a.go", "package a\nimport \"time\"\nfunc f() { time.Sleep(1) }\n", checkSleep,
			"a/a.go:3: no time.Sleep"},
		{"sleep by another name", "a/a.go", "package a\nimport tick \"time\"\nfunc f() { tick.Sleep(1) }\n",
			checkSleep, "a/a.go:3"},
		{"sleep as a value", "a/a.go", "package a\nimport \"time\"\nvar f = time.Sleep\n", checkSleep, "a/a.go:3"},
		{"sleep of something else", "a/a.go", "package a\nfunc f(time T) { time.Sleep(1) }\n", checkSleep, ""},
		{"sleep in test code", "driver/drivertest/a.go", "package a\nimport \"time\"\nvar f = time.Sleep\n", checkSleep, ""},
		{"sleep in a test", "a/a_test.go", "package a\nimport \"time\"\nfunc f() { time.Sleep(1) }\n", checkSleep, ""},
		{"note in a comment", "a/a.go", "package a\n\n// " + todo + ": finish\n", checkUnfinished, "a/a.go:3"},
		{"note in a test", "a/a_test.go", "package a // " + todo + "\n", checkUnfinished, "a/a_test.go:1"},
		{"note in a document", "docs/a.md", "# A\n\nFIX" + "ME later\n", checkUnfinished, "docs/a.md:3"},
		{"context." + todo, "a/a.go", "package a\nimport \"context\"\nvar c = context." + todo + "()\n", checkUnfinished, ""},
		{"neighbour", "a.md", "see .." + "/shared/x.md", checkPrivate, "a.md:1: mentions a directory beside"},
		{"own directory", "a.md", "see docs/shared/x.md", checkPrivate, ""},
		{"machine", "a.sh", "#!/bin/sh\ncd /work" + "/main", checkPrivate, "a.sh:2: mentions a path of one machine"},
		{"home", "a.sh", "ls /home/" + "me/x", checkPrivate, "a.sh:1"},
		{"framework", "a.md", "a framework/work/x and /workers/", checkPrivate, ""},
		{"registry", "Makefile", "GOPROXY=https://proxy." + "golang.org", checkPrivate, "Makefile:1: mentions the host"},
		{"pkg.go.dev", "README.md", "https://pkg.go.dev/x and https://golang.org", checkPrivate, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			expect(t, test.check(parse(test.path, []byte(test.text))), test.broken)
		})
	}
}

func TestLeakRuleCanFail(t *testing.T) {
	t.Parallel()
	const test = "package a\nimport \"testing\"\nfunc TestA(t *testing.T) {}\n"
	const plain = "package a\nimport \"testing\"\nfunc TestMain(m *testing.M) { m.Run() }\n"
	const guarded = "package a\nimport (\n\"testing\"\n\"go.uber.org/goleak\"\n)\nfunc TestMain(m *testing.M) { " +
		"goleak.VerifyTestMain(m) }\n"
	file := func(path, text string) Source { return parse(path, []byte(text)) }
	expect(t, checkLeaks([]Source{file("a/a_test.go", test)}), "a: its tests need")
	expect(t, checkLeaks([]Source{file("a_test.go", test)}), ".: its tests need")
	expect(t, checkLeaks([]Source{file("a/a_test.go", test), file("a/main_test.go", plain)}), "a: its tests need")
	expect(t, checkLeaks([]Source{file("a/a_test.go", test), file("b/main_test.go", guarded)}), "a: its tests need")
	expect(t, checkLeaks([]Source{file("a/a_test.go", test), file("a/main_test.go", guarded)}), "")
	expect(t, checkLeaks([]Source{file("a/main_test.go", plain)}), "")
	expect(t, checkLeaks([]Source{file("internal/archtest/a_test.go", test)}), "")
}

// TestSkippedNames: neither a directory nor a file of these names is read; the .git of a linked worktree is a file that
// names a path of one machine.
func TestSkippedNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for path, text := range map[string]string{".git": "gitdir: elsewhere", "bin/tool": "text", "a/a.go": "package a\n"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(path)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sources, err := readSources(dir)
	if err != nil || len(sources) != 1 || sources[0].Path != "a/a.go" {
		t.Errorf("read %+v, %v; want a/a.go alone", sources, err)
	}
}

// TestNoRandomFailureIsCommitted: a history of random steps that failed once says nothing when the steps change. What
// it found has a test of its own.
func TestNoRandomFailureIsCommitted(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "--", "*/testdata/rapid/*").Output()
	if err != nil {
		t.Skip("this is no clone: ", err)
	}
	if files := strings.Fields(string(out)); len(files) > 0 {
		t.Errorf("remove %q; FERRY_SEED or -rapid.seed repeat a history", files)
	}
}
