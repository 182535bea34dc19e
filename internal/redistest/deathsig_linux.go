package redistest

import (
	"syscall"
	"time"
)

// endWithParent makes the kernel kill a child when the test process dies, however it dies. It leads a group, with the
// processes that it forks itself.
func endWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// endForked kills what a server that is gone had forked, to write a file for example, and waits until that is gone too:
// it would still write into a directory that is being removed.
func endForked(pid int) {
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for range 200 {
		if syscall.Kill(-pid, syscall.SIGKILL) != nil {
			return // nobody is left
		}
		<-look.C
	}
}
