package console

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// npm runs a command of the console.
func npm(t *testing.T, env []string, args ...string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "../scripts/console.sh", args...)
	c.Env = append(os.Environ(), env...)
	c.Stdout, c.Stderr = t.Output(), t.Output() // with -v: how long each test took, and what was measured
	if err := c.Run(); err != nil {
		t.Fatalf("npm %v: %v", args, err)
	}
}

// TestTypesAreFresh: the types are those of the API.
func TestTypesAreFresh(t *testing.T) {
	made := filepath.Join(t.TempDir(), "schema.ts")
	npm(t, nil, "exec", "--", "openapi-typescript", "../admin/openapi.json", "--output", made)
	same(t, made, "src/api/schema.ts")
}

// TestDistIsFresh: dist is what the sources build.
func TestDistIsFresh(t *testing.T) {
	made := t.TempDir()
	npm(t, nil, "run", "build", "--", "--outDir", made, "--emptyOutDir")
	for _, folders := range [][2]string{{made, "dist"}, {"dist", made}} {
		err := filepath.WalkDir(folders[0], func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			short, err := filepath.Rel(folders[0], name)
			if err == nil {
				same(t, name, filepath.Join(folders[1], short))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestLogic runs the tests that need no browser.
func TestLogic(t *testing.T) { npm(t, nil, "test") }

func same(t *testing.T, x, y string) {
	t.Helper()
	a, err := os.ReadFile(x)
	if err != nil {
		t.Error(err)
	}
	b, err := os.ReadFile(y)
	if err != nil || !bytes.Equal(a, b) {
		t.Errorf("%s is not %s (%v): run 'make console'", x, y, err)
	}
}
