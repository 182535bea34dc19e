package rig

import (
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/ferrymq/ferry/test/torture/schedule"
)

// limitActions are what an operating system refuses to a process.
func limitActions(roles ...string) schedule.Actions {
	return schedule.Actions{
		limitFiles: {Roles: roles, Lasting: true, Value: "a number",
			Help: "it can have so many files and connections at most; those that it has stay open"},
		throttleCPU: {Roles: roles, Lasting: true, Value: "a share between 0 and 1",
			Help: "it runs for that share of the time only"},
	}
}

// setFiles limits the files of a process, and returns what undoes it.
func setFiles(pid int, value string) (undo func() error, err error) {
	n, err := strconv.ParseUint(value, 10, 31)
	if err != nil {
		return nil, fmt.Errorf("%s with %q: it takes a number", limitFiles, value)
	}
	var old unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &old); err != nil {
		return nil, err
	}
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: n, Max: old.Max}, nil); err != nil {
		return nil, err
	}
	return func() error { return unix.Prlimit(pid, unix.RLIMIT_NOFILE, &old, nil) }, nil
}
