// Package privatefile opens files that only their owner may read, in directories where others may have put something.
//
// A name that leads elsewhere, above all a symbolic link, is refused before anything happens to what it leads to.
package privatefile

import (
	"errors"
	"os"
)

// Mode is that of private files and, with the right to enter, of their directories.
const (
	Mode    = 0o600
	DirMode = 0o700
)

// Open is os.OpenFile for a regular file of this user, and takes the rights of others away if flag allows to write.
func Open(name string, flag int) (*os.File, error) {
	f, err := open(name, flag)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = check(name, info, writes(flag))
	}
	if err == nil && writes(flag) && info.Mode().Perm() != Mode {
		err = f.Chmod(Mode)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func writes(flag int) bool { return flag&(os.O_WRONLY|os.O_RDWR) != 0 }
