package privatefile

import (
	"errors"
	"os"
	"path/filepath"
)

// Append appends lines to a file of this user, which is made if there is none, in one write that is synced before it
// returns. A line before that was cut off is ended first.
func Append(name string, lines []byte) (err error) {
	_, missing := os.Lstat(name)
	f, err := Open(name, os.O_APPEND|os.O_CREATE|os.O_RDWR)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if torn(f) {
		lines = append([]byte("\n"), lines...)
	}
	if _, err := f.Write(lines); err != nil {
		return err
	}
	if err := f.Sync(); err != nil || missing == nil {
		return err
	}
	return syncDirectory(filepath.Dir(name))
}

// torn reports whether the file ends in the middle of a line.
func torn(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return false
	}
	last := make([]byte, 1)
	_, err = f.ReadAt(last, info.Size()-1)
	return err == nil && last[0] != '\n'
}

// syncDirectory makes a new name in a directory durable. Where directories cannot be synced, the name is as durable as
// it gets.
func syncDirectory(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	_ = d.Sync()
	return d.Close()
}
