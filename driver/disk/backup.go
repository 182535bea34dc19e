package disk

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"github.com/ferrymq/ferry/driver"
)

// Backup makes a copy of the store in dir, which must not exist or be empty, while everything goes on. It contains
// every step that returned before the call, and each later one whole or not at all. Files that do not change are
// linked where that is possible. A copy is a store: open it, or move it to where the store was.
func (d *Driver) Backup(ctx context.Context, dir string) error {
	if d.o.fs != nil {
		return driver.NewError(driver.ErrUnsupported, "only a store on a real disk can be copied", "use a directory", nil)
	}
	to, err := d.dir.destination(dir)
	if err != nil {
		return err
	}
	if err := d.store.c.append(nil, true).Wait(ctx, true); err != nil {
		return err
	}
	return to.copyFrom(d.store)
}

// Backup makes a copy of a store that no process owns, like the method of Driver in the process that owns it. It
// reads no messages into memory, and counts nothing as lost: the copy is as the store was left.
func Backup(ctx context.Context, o Options, dir string) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	if o, err = o.resolved(); err != nil {
		return err
	}
	from, err := enter(o.fs, o.Dir, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.leave()) }()
	to, err := from.destination(dir)
	if err != nil {
		return err
	}
	s, err := openStore(from, o)
	if err != nil {
		return err
	}
	return errors.Join(to.copyFrom(s), s.close())
}

// destination says whether a copy can be made in a directory. Nothing is changed.
func (d *directory) destination(path string) (*directory, error) {
	if path == "" {
		return nil, driver.NewError(driver.ErrInvalid, "no directory for the copy is given",
			"give the path of a directory that does not exist", nil)
	}
	to, err := at(nil, path)
	if err != nil {
		return nil, err
	}
	if inside, err := filepath.Rel(d.path, to.path); err == nil && inside != "." && inside != ".." &&
		!strings.HasPrefix(inside, ".."+string(filepath.Separator)) {
		return nil, driver.NewError(driver.ErrInvalid, fmt.Sprintf("%s lies inside of the store in %s", to.path, d.path),
			"give the path of a directory elsewhere, best on another disk", nil)
	}
	fresh, err := to.inspect()
	if err != nil {
		return nil, err
	}
	if !fresh {
		return nil, driver.NewError(driver.ErrConflict, fmt.Sprintf("%s contains a store already", to.path),
			"give the path of a directory that does not exist", nil)
	}
	return to, nil
}

func (d *directory) copyFrom(s *store) error {
	if err := s.readers.enter(); err != nil {
		return err
	}
	defer s.readers.leave()
	err := d.fs.MkdirAll(d.path, dirMode)
	if err == nil {
		err = s.db.Checkpoint(d.data, pebble.WithFlushedWAL())
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
