//go:build unix

package guard_test

import (
	"syscall"
	"time"
)

// cpuTime is how long this process has computed.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
