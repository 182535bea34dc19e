//go:build unix

package disk

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// openPrivate opens a file of the store by its name. What somebody else has put there, a link above all, is refused before
// anything happens to it.
func openPrivate(name string, flag int) (*os.File, error) {
	f, err := os.OpenFile(name, flag|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, fileMode)
	if errors.Is(err, syscall.ELOOP) {
		return nil, fmt.Errorf("%s is a symbolic link, and may lead anywhere: %w", name, err)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = ownRegular(name, info)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func ownRegular(name string, info os.FileInfo) error {
	s, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a file", name)
	case ok && int(s.Uid) != os.Geteuid() && os.Geteuid() != 0:
		return fmt.Errorf("%s belongs to user %d", name, s.Uid)
	case ok && s.Nlink > 1:
		return fmt.Errorf("%s has another name elsewhere", name)
	}
	return nil
}
