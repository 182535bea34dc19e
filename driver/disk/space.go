package disk

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ferrymq/ferry/driver"
)

// lookEvery is how often the free space is looked at while messages are published.
const lookEvery = 50 * time.Millisecond

// space refuses messages while less than the reserve is free, so that there is always room to settle what is there.
type space struct {
	fs      vfs.FS
	path    string
	reserve uint64
	next    atomic.Int64 // when to look again
	full    atomic.Pointer[driver.Error]
}

func newSpace(d *directory, reserve int64) *space {
	return &space{fs: d.fs, path: d.path, reserve: uint64(reserve)}
}

// room says why no more messages can be stored, or nil.
func (s *space) room() error {
	if now, next := time.Now().UnixNano(), s.next.Load(); now >= next && s.next.CompareAndSwap(next, now+int64(lookEvery)) {
		s.look()
	}
	if err := s.full.Load(); err != nil {
		return err
	}
	return nil
}

func (s *space) look() {
	usage, err := s.fs.GetDiskUsage(s.path)
	if err != nil || usage.AvailBytes >= s.reserve {
		s.full.Store(nil) // what cannot be told does not stop anybody
		return
	}
	s.full.Store(driver.NewError(driver.ErrFull, fmt.Sprintf("the disk of %s has %d MiB left, less than the reserve of %d MiB", s.path, usage.AvailBytes>>20, s.reserve>>20),
		"free space, or let consumers catch up; publishing goes on by itself", nil))
}
