//go:build !linux

package pgtest

import "syscall"

// endWithParent does nothing: only Linux ties the life of a child to that of its parent.
func endWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{}
}
