package redistest

import (
	"context"
	_ "embed" // of the source of the shim
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

//go:embed shim/clock.c
var clockSource []byte

// Clock is the wall clock of servers that were started with it, see Options.Clock: it can be set, and they do not
// notice.
type Clock struct {
	// CPU makes the server measure how long its commands take by the time that it ran, not by that which passed.
	CPU bool

	library, file string
}

// NewClock builds a clock in dir, which right now is that of the machine. It takes a C compiler and Linux.
func NewClock(ctx context.Context, dir string) (*Clock, error) {
	if runtime.GOOS != "linux" {
		return nil, errors.New("the clock of a server can be set on Linux only")
	}
	c := &Clock{library: filepath.Join(dir, "clock.so"), file: filepath.Join(dir, "clock.offset")}
	source := filepath.Join(dir, "clock.c")
	if err := errors.Join(os.WriteFile(source, clockSource, 0o600),
		os.WriteFile(c.file, make([]byte, 8), 0o600)); err != nil {
		return nil, err
	}
	if out, err := exec.CommandContext(ctx, "cc", "-O2", "-shared", "-fPIC", "-o", c.library,
		source).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("the clock of a server takes a C compiler: %w\n%s", err, out)
	}
	return c, nil
}

// Set makes the clock differ from that of the machine by so much, at once and for all its servers.
func (c *Clock) Set(offset time.Duration) error {
	f, err := os.OpenFile(c.file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(offset.Microseconds())), 0)
	return errors.Join(err, f.Close())
}

// environment is what a server needs to have this clock, none for that of the machine.
func (c *Clock) environment() []string {
	if c == nil {
		return nil
	}
	if c.CPU {
		return []string{"LD_PRELOAD=" + c.library, "FERRY_CLOCK_OFFSET=" + c.file, "FERRY_CLOCK_CPU=1"}
	}
	return []string{"LD_PRELOAD=" + c.library, "FERRY_CLOCK_OFFSET=" + c.file}
}
