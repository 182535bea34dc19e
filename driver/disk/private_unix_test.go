//go:build unix

package disk

import (
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"
	"testing"
)

// TestFilesArePrivate opens a store under the most generous umask.
func TestFilesArePrivate(t *testing.T) {
	old := syscall.Umask(0) // of the whole process: not parallel
	defer syscall.Umask(old)
	dir := filepath.Join(t.TempDir(), "store")
	d := open(t, Options{Dir: dir})
	publishN(t, d, 10)
	copied := filepath.Join(t.TempDir(), "copy")
	if err := errors.Join(d.Backup(ctx, copied), d.Close(ctx)); err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{dir, copied} {
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := e.Info()
			if err == nil && info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s has mode %v", path, info.Mode())
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}
