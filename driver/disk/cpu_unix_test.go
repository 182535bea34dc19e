//go:build unix

package disk

import (
	"syscall"
	"testing"
	"time"
)

// cpuTime is what this process has used: a loaded machine changes it less than the time on the wall.
func cpuTime(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
