package pgtest

import "syscall"

// endWithParent makes the kernel stop the server at once when the test process dies, however it dies.
func endWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT}
}
