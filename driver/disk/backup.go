package disk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ferrymq/ferry/driver"
)

// Backup makes a copy of the store in dir, which must not exist or be empty, while everything goes on. It contains
// every step that returned before the call, and each later one whole or not at all. Files that do not change are
// linked where that is possible. A copy is a store: open it, or move it to where the store was.
func (d *Driver) Backup(ctx context.Context, dir string) error {
	if d.o.fs != nil {
		return driver.NewError(driver.ErrUnsupported, "only a store on a real disk can be copied", "use a directory", nil)
	}
	to := &directory{fs: vfs.Default, real: true, path: dir}
	if err := d.store.c.append(nil, true).Wait(ctx, true); err != nil {
		return err
	}
	fresh, err := to.inspect()
	if err != nil {
		return err
	}
	if !fresh {
		return driver.NewError(driver.ErrConflict, fmt.Sprintf("%s contains a store already", dir), "give the path of a directory that does not exist", nil)
	}
	return to.copyFrom(d.store)
}

func (d *directory) copyFrom(s *store) error {
	err := d.fs.MkdirAll(d.path, dirMode)
	if err == nil {
		err = s.db.Checkpoint(filepath.Join(d.path, dataName), pebble.WithFlushedWAL())
	}
	if err == nil {
		err = d.makePrivate()
	}
	if err == nil {
		err = d.begin() // last: without it the copy is not a store
	}
	if err != nil {
		return driver.NewError(driver.ErrNotApplied, fmt.Sprintf("the store cannot be copied to %s", d.path),
			"check that it can be written and has room; remove what is there before you try again", err)
	}
	return nil
}

// makePrivate takes away what the umask gave to others.
func (d *directory) makePrivate() error {
	return filepath.WalkDir(d.path, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			return os.Chmod(path, dirMode)
		}
		return errors.Join(os.Chmod(path, fileMode))
	})
}
