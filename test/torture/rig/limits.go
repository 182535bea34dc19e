package rig

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Actions by which a process has less of the machine than it wants.
const (
	limitFiles  = "limit-files"
	throttleCPU = "throttle-cpu"
)

// limits are what is refused to one process at the moment. The zero value refuses nothing.
type limits struct {
	mu   sync.Mutex
	undo map[string]func() error // by action
}

// begin limits a process until end, and reports whether the action is about limits.
func (l *limits) begin(action, value string, pid func() int, signal func(syscall.Signal) error) (known bool,
	err error) {
	var undo func() error
	switch action {
	case limitFiles:
		undo, err = setFiles(pid(), value)
	case throttleCPU:
		undo, err = throttle(value, signal)
	default:
		return false, nil
	}
	if errors.Is(err, syscall.ESRCH) {
		return true, nil // it has just ended
	}
	if err != nil {
		return true, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.undo == nil {
		l.undo = map[string]func() error{}
	}
	if before := l.undo[action]; before != nil { // one goes on: the older ends with it
		after := undo
		undo = func() error { return errors.Join(after(), before()) }
	}
	l.undo[action] = undo
	return true, nil
}

// end lifts a limit, and reports whether the action is about limits. A process that has ended has none.
func (l *limits) end(action string) (known bool, err error) {
	l.mu.Lock()
	undo := l.undo[action]
	delete(l.undo, action)
	l.mu.Unlock()
	if undo != nil {
		err = undo()
	}
	if errors.Is(err, syscall.ESRCH) || errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	return action == limitFiles || action == throttleCPU, err
}

// stopper signals a server that can be stopped and continued.
func stopper(stop, goOn func() error) func(syscall.Signal) error {
	return func(s syscall.Signal) error {
		if s == syscall.SIGSTOP {
			return stop()
		}
		return goOn()
	}
}

// littleMemory is what processes are told to make do with in bytes, and muchMemory what none of them may ever have
// taken: the program itself, and a collector that comes too late, take several times as much.
const (
	littleMemory = 16 << 20
	muchMemory   = 96 << 20
)

// checkMemory complains about a process that is over and needed more memory than it should.
func checkMemory(s *os.ProcessState) error {
	usage, ok := s.SysUsage().(*syscall.Rusage)
	if ok && runtime.GOOS == "linux" && usage.Maxrss<<10 > muchMemory { // KiB; others count in other units
		return fmt.Errorf("it took %d MiB, although it was told to make do with %d", usage.Maxrss>>10, littleMemory>>20)
	}
	return nil
}

// slice is how often a throttled process gets its share.
const slice = 100 * time.Millisecond

// throttle lets a process run for a share of each slice, as a quota of its container would. The function that it
// returns lets it run on.
func throttle(value string, signal func(syscall.Signal) error) (undo func() error, err error) {
	share, err := strconv.ParseFloat(value, 64)
	if err != nil || share <= 0 || share > 1 {
		return nil, fmt.Errorf("%s with %q: it takes a share between 0 and 1", throttleCPU, value)
	}
	runs := time.Duration(share * float64(slice))
	over, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		var err error
		for on := false; ; on = !on {
			s, lasts := syscall.SIGSTOP, slice-runs
			if on {
				s, lasts = syscall.SIGCONT, runs
			}
			err = errors.Join(err, signal(s))
			select {
			case <-over:
				ended <- errors.Join(err, signal(syscall.SIGCONT))
				return
			case <-time.After(lasts):
			}
		}
	}()
	return func() error {
		close(over)
		return <-ended
	}, nil
}
