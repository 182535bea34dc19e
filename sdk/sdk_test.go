package sdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver/remote"
	"github.com/ferrymq/ferry/internal/runtest"
	"github.com/ferrymq/ferry/result"
	"github.com/ferrymq/ferry/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(tidy{m}) }

// tidy removes what the tests have built.
type tidy struct{ *testing.M }

func (t tidy) Run() int {
	defer func() { _ = os.RemoveAll(built) }()
	return t.M.Run()
}

// patience bounds one run of another language's tests.
const patience = 10 * time.Minute

// run runs a command in a directory of the SDKs with variables besides our own, and returns what it prints.
func run(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c := exec.CommandContext(ctx, name, args...)
	c.Dir, c.Env = dir, append(os.Environ(), env...)
	c.WaitDelay = time.Second // processes that it started may hold its output
	var logged strings.Builder
	c.Stderr = &logged
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, logged.String())
	}
	return string(out)
}

// The suite of the Python SDK.
func TestPython(t *testing.T) {
	t.Parallel()
	s := serve(t)
	reports(t, s)
	modules, err := filepath.Glob("python/tests/test_*.py")
	if err != nil || len(modules) == 0 {
		t.Fatalf("the tests are not found: %v", err)
	}
	t.Run("modules", func(t *testing.T) { // which ends when all of them have
		for _, path := range modules {
			module := strings.TrimSuffix(filepath.Base(path), ".py")
			t.Run(module, func(t *testing.T) {
				t.Parallel() // they mostly wait
				run(t, "python", append(s.env(), "PYTHONPATH=src", "PYTHONDONTWRITEBYTECODE=1"), "python3", "-m", "unittest",
					"tests."+module)
			})
		}
	})
}

// The suite of the TypeScript SDK. It is compiled first, which checks its types.
func TestTypeScript(t *testing.T) {
	t.Parallel()
	s := serve(t)
	reports(t, s)
	node := compiled(t)
	tests, err := filepath.Glob("typescript/test/*.test.mjs")
	if err != nil || len(tests) == 0 {
		t.Fatalf("the tests are not found: %v", err)
	}
	args := []string{"--test", "--test-concurrency=4"} // they mostly wait
	for _, test := range tests {
		args = append(args, filepath.Join("test", filepath.Base(test)))
	}
	run(t, "typescript", s.env(), node, args...)
}

// The suite of the TypeScript SDK that needs no other process runs on Deno, too, whose own compiler knows every type of
// the sources.
func TestDeno(t *testing.T) {
	t.Parallel()
	s := serve(t)
	reports(t, s)
	compiled(t)
	deno := strings.TrimSpace(run(t, ".", nil, "../scripts/deno.sh"))
	env := append(s.env(), "DENO_NO_UPDATE_CHECK=1", "DENO_DIR="+t.TempDir())
	t.Run("types", func(t *testing.T) {
		t.Parallel()
		run(t, "typescript", env, deno, "check", "--no-remote", "src/index.ts")
	})
	for _, test := range []string{"client", "worker", "lanes", "leases"} {
		t.Run(test, func(t *testing.T) {
			t.Parallel() // they mostly wait
			run(t, "typescript", env, deno, "test", "--allow-all", "--no-check", "--no-remote",
				filepath.Join("test", test+".test.mjs"))
		})
	}
}

// Every type of the Python SDK is known, and fits.
func TestPythonTypes(t *testing.T) {
	t.Parallel()
	mypy := strings.TrimSpace(run(t, ".", nil, "../scripts/mypy.sh"))
	run(t, "python", []string{"PYTHONPATH=" + mypy}, "python3", "-m", "mypy", "--strict", "--cache-dir", t.TempDir(),
		"src")
}

// The Python SDK is packaged as pip expects it: a wheel with its types, that needs nothing.
func TestWheel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("python")); err != nil { // building leaves files behind
		t.Fatal(err)
	}
	retry, err := filepath.Abs("../scripts/retry.sh")
	if err != nil {
		t.Fatal(err)
	}
	run(t, dir, nil, retry, "python3", "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", "out", ".")
	script := `import glob, sys, zipfile
wheel = zipfile.ZipFile(glob.glob("out/ferrymq-*-py3-none-any.whl")[0])
print(*sorted(name for name in wheel.namelist() if name.startswith("ferrymq/")))
sys.path.insert(0, wheel.filename)
import ferrymq
print(ferrymq.__file__)`
	out := run(t, dir, nil, "python3", "-c", script)
	if !strings.Contains(out, "ferrymq/py.typed") || !strings.Contains(out, ".whl/ferrymq/__init__.py") {
		t.Errorf("the wheel has: %s", out)
	}
}

// The TypeScript SDK is packaged as npm expects it: modules with their types, and nothing that only its tests need.
func TestPackage(t *testing.T) {
	t.Parallel()
	node := compiled(t)
	path := "PATH=" + filepath.Dir(node) + string(os.PathListSeparator) + os.Getenv("PATH")
	out := run(t, "typescript", []string{path}, filepath.Join(filepath.Dir(node), "npm"), "pack", "--dry-run", "--json",
		"--ignore-scripts", "--offline")
	var packages []struct{ Files []struct{ Path string } }
	if err := json.Unmarshal([]byte(out), &packages); err != nil || len(packages) != 1 {
		t.Fatalf("npm says %s: %v", out, err)
	}
	has := map[string]bool{}
	for _, file := range packages[0].Files {
		has[file.Path] = true
		if top, _, nested := strings.Cut(file.Path, "/"); nested && top != "dist" && top != "src" {
			t.Errorf("the package has %s", file.Path)
		}
	}
	for _, want := range []string{"package.json", "README.md", "dist/index.js", "dist/index.d.ts", "src/index.ts"} {
		if !has[want] {
			t.Errorf("the package has no %s: %v", want, has)
		}
	}
}

// reports runs a worker in Go that keeps the results of its handler, for those who wait in other languages.
func reports(t *testing.T, s *server) {
	t.Helper()
	broker, err := remote.Open(t.Context(), remote.Options{URL: s.broker, Token: s.token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = broker.Close(context.Background()) })
	keep, err := result.Keep(broker, result.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := worker.New(broker, worker.Options{})
	worker.Handle(w, "reports", func(ctx context.Context, m *ferry.Msg[struct{ N int }]) error {
		if m.Value.N < 0 {
			return worker.Dead("rejected", errors.New("n is negative"))
		}
		return result.Return(ctx, 2*m.Value.N)
	}, worker.Use(keep))
	runtest.Start(t, w.Run)
}

// What the examples print, in both languages.
const tickets = `ticket 1: the printer is busy
ticket 1 is printed, attempt 2
ticket 2 is printed, attempt 1
ticket 3: there is no paper
ticket 3 is dead: no_paper: the tray is empty
ticket 3 is printed, attempt 1
the first receipt is for ticket 1
`

// The examples do what they say, on ferry dev.
func TestExamples(t *testing.T) {
	t.Parallel()
	t.Run("python", func(t *testing.T) {
		t.Parallel()
		env := append(dev(t).env(), "PYTHONPATH=sdk/python/src", "PYTHONDONTWRITEBYTECODE=1")
		if out := run(t, "..", env, "python3", "examples/python/tickets.py"); out != tickets {
			t.Errorf("it prints:\n%s", out)
		}
	})
	t.Run("typescript", func(t *testing.T) {
		t.Parallel()
		node, dir := compiled(t), t.TempDir()
		install(t, dir)
		run(t, dir, nil, node, "node_modules/ferrymq/node_modules/typescript/bin/tsc")
		if out := run(t, dir, dev(t).env(), node, "tickets.js"); out != tickets {
			t.Errorf("it prints:\n%s", out)
		}
	})
}

// install copies the example in TypeScript, with the SDK as npm would link it.
func install(t *testing.T, dir string) {
	t.Helper()
	sdk, err := filepath.Abs("typescript")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "node_modules"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(sdk, filepath.Join(dir, "node_modules", "ferrymq")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tickets.ts", "tsconfig.json", "package.json"} {
		text, err := os.ReadFile(filepath.Join("../examples/typescript", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
