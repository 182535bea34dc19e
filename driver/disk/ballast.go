package disk

import (
	"log/slog"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ferrymq/ferry/internal/privatefile"
)

// ballast is a part of the reserve that nobody else can take: a file that has room and no content. It is removed when a
// write finds none, so that what is there can be received and settled, and laid out again when the store is opened with
// more than the reserve free.
type ballast struct {
	path string
	size int64
	log  *slog.Logger
}

// mostBallast is how much is laid out at most; otherwise it is an eighth of the reserve.
const mostBallast = 32 << 20

// layOut makes the file if there is room. Without it everything works, but on a full disk.
func (b *ballast) layOut(d *directory, reserve int64) error {
	usage, err := d.fs.GetDiskUsage(d.path)
	if err != nil || b.size == 0 || usage.AvailBytes < uint64(reserve+b.size) {
		return nil //nolint:nilerr // what cannot be told does not stop anybody
	}
	f, err := privatefile.Open(b.path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return err
	}
	if err := allocate(f, b.size); err != nil {
		b.log.Warn("nothing can be reserved on the disk", "dir", d.path, "error", err)
	}
	return f.Close()
}

// below returns the file system on which a write that finds no room releases the ballast, and is tried once more.
func (b *ballast) below(fs vfs.FS) vfs.FS { return vfs.OnDiskFull(fs, b.release) }

func (b *ballast) release() {
	if err := os.Remove(b.path); err == nil {
		b.log.Error("the disk is full: what was reserved is used now", "file", b.path, "bytes", b.size)
	}
}
