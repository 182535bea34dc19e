//go:build unix

package disk

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/ferrymq/ferry/driver"
)

// TestPlantedLinksAreRefused: a link in the place of a file of the store, new or old, is refused, and what it leads to
// stays as it was.
func TestPlantedLinksAreRefused(t *testing.T) {
	t.Parallel()
	for _, old := range []bool{false, true} {
		for _, name := range []string{ownerName, formatName, formatName + ".tmp", reserveName, dataName} {
			dir := t.TempDir()
			store, precious := filepath.Join(dir, "store"), filepath.Join(dir, "precious")
			put(t, precious, "precious")
			prepareStore(t, store, old)
			if err := os.RemoveAll(filepath.Join(store, name)); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(precious, filepath.Join(store, name)); err != nil {
				t.Fatal(err)
			}
			d, err := New(context.Background(), Options{Dir: store})
			if name == formatName+".tmp" { // nobody needs it
				if err != nil {
					t.Errorf("with %s: %v", name, err)
				} else if err := d.Close(ctx); err != nil {
					t.Error(err)
				}
			} else {
				refused(t, "a store with a link for "+name, err, driver.ErrInvalid, "symbolic link")
			}
			if text, err := os.ReadFile(precious); err != nil || string(text) != "precious" {
				t.Errorf("what %s led to is %q, %v", name, text, err)
			}
		}
	}
}

func prepareStore(t *testing.T, dir string, old bool) {
	t.Helper()
	if !old {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err := open(t, Options{Dir: dir}).Close(ctx); err != nil {
		t.Fatal(err)
	}
}

// TestOpenDirectoryIsRefused: where everybody may write, anybody may plant something at any time.
func TestOpenDirectoryIsRefused(t *testing.T) {
	t.Parallel()
	for _, mode := range []os.FileMode{0o777, 0o777 | os.ModeSticky, 0o702} {
		dir := filepath.Join(t.TempDir(), "store")
		prepareStore(t, dir, true)
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		_, err := New(context.Background(), Options{Dir: dir})
		refused(t, "a directory with mode "+mode.String(), err, driver.ErrInvalid, "everybody may write")
		if _, err := Check(ctx, Options{Dir: dir}); err == nil {
			t.Errorf("mode %v: it was checked", mode)
		}
	}
}
