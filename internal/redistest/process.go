package redistest

import (
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
)

// process is a running child. One goroutine starts and awaits it, locked to its thread: the kernel ends the child with
// the thread that started it, not with the process, so that thread must live for nothing else.
type process struct {
	cmd    *exec.Cmd
	done   chan struct{} // closed when the child has been awaited
	frozen atomic.Bool   // by Server.Stop
}

// startProcess runs a program with some variables beside ours, whose output is appended to log.
func startProcess(binary string, args, environment []string, dir string, log *os.File) (*process, error) {
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), environment...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	cmd.SysProcAttr = endWithParent()
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		defer close(p.done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is in its log
		}
	}()
	if err := <-started; err != nil {
		<-p.done
		return nil, err
	}
	return p, nil
}

func (p *process) pid() int {
	return p.cmd.Process.Pid
}

// signal fails when the child has ended: it never reaches another process that got its number.
func (p *process) signal(s os.Signal) error {
	return p.cmd.Process.Signal(s)
}

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// kill ends the child at once, with what it has forked, and returns when they are gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // the only error is that it has ended
	<-p.done
	endForked(p.pid())
}
