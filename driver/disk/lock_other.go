//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package disk

import "os"

// tryLock does nothing: Pebble locks its own directory.
func tryLock(*os.File) error { return nil }

func unlock(f *os.File) error { return f.Close() }
