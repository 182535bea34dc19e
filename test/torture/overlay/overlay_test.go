package overlay

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

// TestEdit: the program that is built with an overlay is another one; the source and what is built without it stay.
func TestEdit(t *testing.T) {
	t.Parallel()
	dir := module(t)
	o, err := New(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []Edit{
		{File: "main.go", Search: `fmt.Println("after", i)`, Replace: `fmt.Println("planted", i)`},
		{File: "main.go", Search: "i <= 3", Replace: "i <= 1"},
	} {
		if err := o.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	for binary, want := range map[string]string{
		build(t, dir, o):   "before 1\nplanted 1\n",
		build(t, dir, nil): "before 1\nafter 1\nbefore 2\nafter 2\nbefore 3\nafter 3\n",
	} {
		if out, err := exec.Command(binary).Output(); err != nil || string(out) != want {
			t.Errorf("%q, %v; want %q", out, err, want)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "main.go")); err != nil || string(text) != program {
		t.Errorf("the source changed: %v", err)
	}
}

func TestEditsThatNoLongerFit(t *testing.T) {
	t.Parallel()
	o, err := New(module(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, search := range []string{"not there", "fmt.Println", ""} {
		if err := o.Apply(Edit{File: "main.go", Search: search, Replace: "x"}); err == nil ||
			!strings.Contains(err.Error(), "mend the edit") {
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
