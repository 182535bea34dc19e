//go:build unix

package worker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ferrymq/ferry/driver"
)

// powerCut is a file that a power loss leaves as it was when it was last synced.
type powerCut struct {
	*os.File
	written, synced int
}

func (f *powerCut) Write(p []byte) (int, error) {
	f.written += len(p)
	return f.File.Write(p)
}

func (f *powerCut) Sync() error {
	f.synced = f.written
	return f.File.Sync()
}

func aLetter() []unburied {
	c := &consumer{topic: "t", group: "g", e: &engine{instance: "i"}}
	return []unburied{{c: c, d: &driver.Delivery{Message: &driver.Message{ID: "a", Topic: "t"}}}}
}

// TestEmergencyFileIsSynced: a letter that is said to be in the file survives a power loss.
func TestEmergencyFileIsSynced(t *testing.T) {
	t.Parallel()
	m := newEmergencies(Emergency{File: filepath.Join(t.TempDir(), "emergency.ndjson")})
	var file *powerCut
	m.open = func(name string) (letterFile, error) {
		f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
		file = &powerCut{File: f}
		return file, err
	}
	if err := m.write(aLetter()); err != nil {
		t.Fatal(err)
	}
	if file.written == 0 || file.synced != file.written {
		t.Errorf("%d bytes were written, %d survive", file.written, file.synced)
	}
}

// TestEmergencyFileIsPrivate: a link in its place is refused, and what it leads to stays; a file that others may read
// is taken away from them.
func TestEmergencyFileIsPrivate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	precious := filepath.Join(dir, "precious")
	if err := os.WriteFile(precious, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := newEmergencies(Emergency{File: filepath.Join(dir, "emergency.ndjson")})
	if err := os.Symlink(precious, m.File); err != nil {
		t.Fatal(err)
	}
	if err := m.write(aLetter()); err == nil || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("a link was written to: %v", err)
	}
	if text, err := os.ReadFile(precious); err != nil || string(text) != "precious" {
		t.Errorf("%q, %v", text, err)
	}
	if err := os.Remove(m.File); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(m.File, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(m.File, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := m.write(aLetter()); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(m.File); err != nil || info.Mode().Perm() != 0o600 || info.Size() == 0 {
		t.Errorf("%v, %v", info, err)
	}
}
