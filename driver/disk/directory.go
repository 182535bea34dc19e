package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/privatefile"
)

// A directory of a store contains:
//
//	FERRY    what it is, and the version of its format
//	owner    locked by the process that uses it; its pid
//	reserve  room without content: see ballast.go
//	data     Pebble
const (
	formatName  = "FERRY"
	ownerName   = "owner"
	reserveName = "reserve"
	dataName    = "data"

	formatVersion = 1
	formatMagic   = "ferry disk store, version "

	dirMode  = privatefile.DirMode
	fileMode = privatefile.Mode
)

// directory is a directory that this process owns.
type directory struct {
	fs    vfs.FS
	real  bool // on the file system of the operating system
	path  string
	data  string
	owner *os.File // locked; nil: not ours, or not a real directory
}

// enter makes sure that path is a store, or can become one, and takes it. Nothing is changed unless it can.
func enter(fs vfs.FS, path string, mustExist bool) (*directory, error) {
	d, err := at(fs, path)
	if err != nil {
		return nil, err
	}
	fresh, err := d.inspect()
	if err != nil {
		return nil, err
	}
	if fresh && mustExist {
		return nil, d.errNoStore()
	}
	if err := d.refuseFull(); err != nil {
		return nil, err
	}
	if fresh {
		if err := d.fs.MkdirAll(d.path, dirMode); err != nil {
			return nil, d.errUnusable(err)
		}
	}
	if err := d.own(os.O_RDWR | os.O_CREATE); err != nil {
		return nil, err
	}
	if err = d.sign(); err == nil && fresh {
		err = d.begin()
	}
	if err != nil {
		return nil, errors.Join(d.errUnusable(err), d.leave())
	}
	return d, nil
}

// at returns the directory with a path, before anything is known of it. Without a file system it is a real one.
func at(fs vfs.FS, path string) (*directory, error) {
	d := &directory{fs: fs, path: path}
	if fs == nil {
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, d.errUnusable(err)
		}
		d.fs, d.real, d.path = vfs.Default, true, abs
	}
	d.data = d.fs.PathJoin(d.path, dataName)
	return d, nil
}

// inspect looks at the directory without changing anything, and reports whether a store can be made there.
func (d *directory) inspect() (fresh bool, err error) {
	info, err := d.fs.Stat(d.path)
	if errors.Is(err, os.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, d.errUnusable(err)
	}
	if !info.IsDir() {
		return false, driver.NewError(driver.ErrInvalid, fmt.Sprintf("%s is not a directory", d.path),
			"give the path of a directory, or of one that does not exist yet", nil)
	}
	if err := d.refusePlanted(info); err != nil {
		return false, err
	}
	names, err := d.fs.List(d.path)
	if err != nil {
		return false, d.errUnusable(err)
	}
	format, err := d.readFormat()
	if errors.Is(err, os.ErrNotExist) {
		return true, d.refuseForeign(names)
	}
	if err != nil {
		return false, d.errUnusable(err)
	}
	return false, d.checkFormat(format)
}

// refusePlanted refuses a directory in which others may put what they like, and links in the place of what is ours:
// they would decide where we write.
func (d *directory) refusePlanted(info os.FileInfo) error {
	if !d.real {
		return nil
	}
	if err := privatefile.Exposed(info); err != nil {
		return driver.NewError(driver.ErrInvalid, fmt.Sprintf("%s is no place for a store", d.path),
			"chmod 700 "+d.path+", if what is in it is yours", err)
	}
	for _, name := range []string{formatName, ownerName, reserveName, dataName} {
		path := filepath.Join(d.path, name)
		if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSymlink != 0 {
			return driver.NewError(driver.ErrInvalid, path+" is a symbolic link, and may lead anywhere",
				"find out who made it; to move a store, move its whole directory", nil)
		}
	}
	return nil
}

// GuardsDir is a directory inside of a store's that is not the broker's own: the guard store that belongs to it lies
// there.
const GuardsDir = "guards"

// refuseForeign refuses a directory without a format that contains something. A store that could not be finished when
// it was made contains its lock and an unfinished format at most; the guard store may have come before the broker.
func (d *directory) refuseForeign(names []string) error {
	for _, name := range names {
		if name != ownerName && name != formatName+".tmp" && name != GuardsDir {
			return driver.NewError(driver.ErrInvalid, fmt.Sprintf("%s is no store of this broker: it contains %.80q", d.path,
				name),
				"give the path of an empty directory, or of one that does not exist yet", nil)
		}
	}
	return nil
}

func (d *directory) readFormat() (string, error) {
	open := func() (io.ReadCloser, error) { return d.fs.Open(d.fs.PathJoin(d.path, formatName)) }
	if d.real {
		open = func() (io.ReadCloser, error) { return privatefile.Open(filepath.Join(d.path, formatName), os.O_RDONLY) }
	}
	f, err := open()
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(f, 1<<10))
	return string(text), errors.Join(err, f.Close())
}

func (d *directory) checkFormat(text string) error {
	number, ok := strings.CutPrefix(strings.TrimSpace(text), formatMagic)
	version, err := strconv.Atoi(number)
	switch {
	case !ok || err != nil:
		return driver.NewError(driver.ErrInvalid, fmt.Sprintf("%s says %.80q, which is no format of this broker",
			d.fs.PathJoin(d.path, formatName), text),
			"restore the directory from a backup, or give another one", nil)
	case version > formatVersion:
		return driver.NewError(driver.ErrUnsupported, fmt.Sprintf("the store in %s has format version %d, this program "+
			"knows up to %d", d.path, version, formatVersion),
			"use the newer program that wrote it", nil)
	}
	return nil
}

// begin makes an empty store. The format is there before the data, and whole.
func (d *directory) begin() error {
	name := d.fs.PathJoin(d.path, formatName)
	if err := d.fs.Remove(name + ".tmp"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err // what an attempt before left, or somebody else: it is not written to
	}
	f, err := d.fs.Create(name+".tmp", "ferry-format")
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(formatMagic + strconv.Itoa(formatVersion) + "\n"))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if d.real {
		if err := os.Chmod(name+".tmp", fileMode); err != nil {
			return err
		}
	}
	if err := d.fs.Rename(name+".tmp", name); err != nil {
		return err
	}
	return errors.Join(syncDir(d.fs, d.path), syncDir(d.fs, d.fs.PathDir(d.path)))
}

// syncDir makes the entries of a directory survive a power loss.
func syncDir(fs vfs.FS, path string) error {
	f, err := fs.OpenDir(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// leave gives the directory up.
func (d *directory) leave() error {
	if d.owner == nil {
		return nil
	}
	return unlock(d.owner)
}

// errUnusable says what is wrong with the directory or what is in it.
func (d *directory) errUnusable(err error) error {
	text := fmt.Sprintf("the store in %s cannot be opened", d.path)
	var e *driver.Error
	switch {
	case errors.As(err, &e): // an error has one kind
		return driver.NewError(e.Kind, text+": "+e.Text, e.Hint, e.Cause)
	case pebble.IsCorruptionError(err):
		return driver.NewError(driver.ErrInvalid, text, "restore the directory from a backup; nothing was changed", err)
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		return driver.NewError(driver.ErrFull, text, fullHint, err)
	}
	return driver.NewError(driver.ErrNotApplied, text, "check that it exists, belongs to you, and can be written", err)
}

// errUnreadable says of an error without a hint what it means for the directory.
func (d *directory) errUnreadable(err error) error {
	var e *driver.Error
	if errors.As(err, &e) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return d.errUnusable(err)
}
