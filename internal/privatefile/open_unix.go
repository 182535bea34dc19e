//go:build unix

package privatefile

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// open follows no link, and waits for nobody at the other end of a pipe.
func open(name string, flag int) (*os.File, error) {
	f, err := os.OpenFile(name, flag|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, Mode)
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.EMLINK) {
		return nil, fmt.Errorf("%s is a symbolic link, and may lead anywhere: %w", name, err)
	}
	return f, err
}

// check says why a file is not one of this user. A second name is refused only where something would be written to it.
func check(name string, info os.FileInfo, written bool) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a file", name)
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
	case int(s.Uid) != os.Geteuid() && os.Geteuid() != 0:
		return fmt.Errorf("%s belongs to user %d", name, s.Uid)
	case written && s.Nlink > 1:
		return fmt.Errorf("%s has another name elsewhere", name)
	}
	return nil
}

// Exposed says why a directory is not safe to keep files in, or nil.
func Exposed(info os.FileInfo) error {
	if info.Mode().Perm()&0o002 != 0 {
		return fmt.Errorf("everybody may write to it (mode %v)", info.Mode().Perm())
	}
	return nil
}
