package overlay

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const program = `package main

import "fmt"

func main() {
	for i := 1; i <= 3; i++ {
		fmt.Println("before", i)
		fmt.Println("after", i)
	}
}
`

// module writes a tiny program into a module of its own.
func module(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module tiny\n\ngo 1.26\n", "main.go": program} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// build compiles the program with an overlay, or without when it is nil.
func build(t *testing.T, dir string, o *Overlay) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "tiny")
	args := []string{"build", "-o", binary}
	if o != nil {
		name, err := o.Write(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, "-overlay", name)
	}
	cmd := exec.Command("go", append(args, ".")...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

func TestKillAtAnExactLine(t *testing.T) {
	t.Parallel()
	dir := module(t)
	o, err := New(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.KillAt("between", "main", "main.go", `fmt.Println("after", i)`); err != nil {
		t.Fatal(err)
	}
	binary := build(t, dir, o)

	run := func(env ...string) (string, syscall.WaitStatus) {
		cmd := exec.Command(binary)
		cmd.Env = append(os.Environ(), env...)
		out, err := cmd.Output()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if !ok {
			t.Fatal("no wait status")
		}
		return string(out), status
	}
	if out, status := run(); status != 0 || !strings.HasSuffix(out, "after 3\n") {
		t.Errorf("not asked to die: %q %v", out, status)
	}
	if out, status := run(KillAt + "=between"); !status.Signaled() || status.Signal() != syscall.SIGKILL || out != "before 1\n" {
		t.Errorf("killed at the first hit: %q %v", out, status)
	}
	if out, status := run(KillAt+"=between", KillHit+"=3"); !status.Signaled() || out != "before 1\nafter 1\nbefore 2\nafter 2\nbefore 3\n" {
		t.Errorf("killed at the third hit: %q %v", out, status)
	}
}

func TestNoResidue(t *testing.T) {
	t.Parallel()
	dir := module(t)
	for _, name := range []string{build(t, dir, nil), filepath.Join(dir, "main.go")} {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(content, []byte(KillAt)) || bytes.Contains(content, []byte("overlayKillAt")) {
			t.Errorf("%s has something of the overlay in it", name)
		}
	}
}

func TestEditsThatNoLongerFit(t *testing.T) {
	t.Parallel()
	o, err := New(module(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, search := range []string{"not there", "fmt.Println", ""} {
		if err := o.Apply(Edit{File: "main.go", Search: search, Replace: "x"}); err == nil || !strings.Contains(err.Error(), "mend the edit") {
			t.Errorf("search for %q: %v", search, err)
		}
	}
	if err := o.Apply(Edit{File: "gone.go", Search: "x"}); err == nil {
		t.Error("a file that does not exist was edited")
	}
	if _, err := New(t.TempDir()); err == nil {
		t.Error("a directory without go.mod is no module")
	}
}
