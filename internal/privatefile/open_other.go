//go:build !unix

package privatefile

import (
	"fmt"
	"os"
)

// open refuses what is there and not a file.
func open(name string, flag int) (*os.File, error) {
	if info, err := os.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", name)
	}
	return os.OpenFile(name, flag, Mode)
}

// check has nothing to add: rights are not in the mode of a file.
func check(string, os.FileInfo, bool) error { return nil }

// Exposed says why a directory is not safe to keep files in, or nil: its mode does not tell.
func Exposed(os.FileInfo) error { return nil }
