package rig

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
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

// followMemory follows how much memory a process has ever taken, until it is told to stop and returns it: in bytes, 0
// where the system does not say. What is told of a process that is over will not do: it begins as a copy of this one,
// and whatever this one had taken until then counts as its own.
func followMemory(pid int) (stop func() (most int64)) {
	over, end := make(chan struct{}), make(chan int64)
	most := peakOf(pid)
	go func() {
		for {
			select {
			case <-time.After(followEvery):
				most = max(most, peakOf(pid))
			case <-over:
				end <- most
				return
			}
		}
	}()
	return func() int64 {
		close(over)
		return <-end
	}
}

// followEvery is how often the memory of a process is looked at. The system keeps its peak, so that only what it takes
// at its very end may be missed.
const followEvery = 50 * time.Millisecond

func peakOf(pid int) int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // not of one that is over
	return peak(string(text))
}

// peak is the most memory that a status of a process tells of, in bytes.
func peak(status string) int64 {
	_, rest, _ := strings.Cut(status, "VmHWM:")
	kilobytes, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	n, _ := strconv.ParseInt(kilobytes, 10, 64)
	return n << 10
}

// checkMemory complains about a process that needed more memory than it should.
func checkMemory(most int64) error {
	if most > muchMemory {
		return fmt.Errorf("it took %d MiB, although it was told to make do with %d", most>>20, littleMemory>>20)
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
