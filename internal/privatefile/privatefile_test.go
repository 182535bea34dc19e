//go:build unix

package privatefile

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestWhatIsPlantedIsRefused: neither links nor pipes nor directories are opened, and what they lead to stays as it
// was.
func TestWhatIsPlantedIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	precious, name := filepath.Join(dir, "precious"), filepath.Join(dir, "file")
	if err := os.WriteFile(precious, []byte("precious"), 0o644); err != nil {
		t.Fatal(err)
	}
	for what, plant := range map[string]func() error{
		"a link":          func() error { return os.Symlink(precious, name) },
		"a dangling link": func() error { return os.Symlink(filepath.Join(dir, "new"), name) },
		"a second name":   func() error { return os.Link(precious, name) },
		"a pipe":          func() error { return syscall.Mkfifo(name, 0o600) },
		"a directory":     func() error { return os.Mkdir(name, 0o700) },
	} {
		if err := plant(); err != nil {
			t.Fatal(err)
		}
		f, err := Open(name, os.O_RDWR|os.O_CREATE)
		if err == nil {
			t.Errorf("%s was opened: %v", what, f.Close())
		} else if !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v does not name it", what, err)
		}
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(precious)
	info, _ := os.Stat(precious)
	if err != nil || string(text) != "precious" || info.Mode().Perm() != 0o644 {
		t.Errorf("what the links led to is %q, %v, %v", text, info.Mode(), err)
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); err == nil {
		t.Error("a dangling link was followed")
	}
}

// TestFilesAreMadePrivate: a file that is there loses the rights of others when it is to be written.
func TestFilesAreMadePrivate(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := Open(name, os.O_RDWR|os.O_APPEND)
	if err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil || info.Mode().Perm() != Mode || info.Size() != 3 {
		t.Errorf("%v, %v", info, err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
