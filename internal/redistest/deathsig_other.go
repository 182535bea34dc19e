//go:build !linux

package redistest

import "syscall"

// endWithParent does nothing: only Linux ties the life of a child to that of its parent.
func endWithParent() *syscall.SysProcAttr {
	return nil
}

// endForked does nothing elsewhere.
func endForked(int) {}
