package system

import (
	"os"
	"path/filepath"
	"testing"
)

func TestDirSizeCountsAllFilesBelow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "below"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, size := range map[string]int{"a": 100, "below/b": 23} {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, size), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := DirSize(dir); n != 123 || err != nil {
		t.Errorf("got %d, %v; want 123", n, err)
	}
	if n, err := DirSize(filepath.Join(dir, "gone")); n != 0 || err != nil {
		t.Errorf("a directory that is gone has %d bytes, %v", n, err)
	}
}
