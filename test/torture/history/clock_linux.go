package history

import (
	"syscall"
	"unsafe"
)

const clockMonotonic = 1

// Now reads CLOCK_MONOTONIC, in nanoseconds. Go's own monotonic reading counts from the start of each process, so that
// two processes could not be compared.
func Now() int64 {
	var ts syscall.Timespec
	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&ts)),
		0); errno != 0 {
		return 0
	}
	return ts.Nano()
}
