package kafkatest

import "syscall"

// endWithParent makes the kernel kill a child when the test process dies, however it dies.
func endWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
