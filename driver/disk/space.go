package disk

import (
	"errors"
	"fmt"
	"os"
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

// flushTakes is the room without which nothing is flushed that can wait: the log that is open has its room already, and
// a new one, which a flush begins, may find none.
const flushTakes = 4 << 20

// tight reports whether what can wait should.
func (s *space) tight() bool {
	usage, err := s.fs.GetDiskUsage(s.path)
	return err == nil && usage.AvailBytes < flushTakes
}

// room says why no more messages can be stored, or nil.
func (s *space) room() error {
	if now, next := time.Now().UnixNano(), s.next.Load(); now >= next &&
		s.next.CompareAndSwap(next, now+int64(lookEvery)) {
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
	s.full.Store(driver.NewError(driver.ErrFull, fmt.Sprintf("the disk of %s has %d MiB left, less than the reserve of "+
		"%d MiB", s.path, usage.AvailBytes>>20, s.reserve>>20),
		"free space, or let consumers catch up; publishing goes on by itself", nil))
}

// openingTakes is the room without which a store is not opened: files of Pebble, and what a first look at the messages
// stores.
const openingTakes = 1 << 20

const fullHint = "free space, and open it again: what is stored is still there"

// refuseFull says that the disk has no room to open a store. Nothing is changed.
func (d *directory) refuseFull() error {
	for path := d.path; ; path = d.fs.PathDir(path) {
		usage, err := d.fs.GetDiskUsage(path)
		switch {
		case errors.Is(err, os.ErrNotExist) && path != d.fs.PathDir(path):
			continue // it is made later
		case err != nil || usage.AvailBytes >= openingTakes:
			return nil // what cannot be told does not stop anybody
		}
		return driver.NewError(driver.ErrFull, fmt.Sprintf("the store in %s cannot be opened: the disk has %d KiB left",
			d.path, usage.AvailBytes>>10), fullHint, nil)
	}
}
