package disk

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/ferrymq/ferry/driver"
)

// faultFS is errorfs that also sees what happens to files that are used again. Pebble's own hands them out as they are:
// nobody would see the writes to a log that was recycled, and a crash could not be told from what came a moment later.
type faultFS struct {
	vfs.FS
	see func(errorfs.Op) error
}

// newFaultFS returns a file system that calls see before each operation. An error of it is that of the operation.
func newFaultFS(below vfs.FS, see func(errorfs.Op) error) *faultFS {
	return &faultFS{FS: errorfs.Wrap(below, errorfs.InjectorFunc(see)), see: see}
}

func (fs *faultFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.ReuseForWrite(oldname, newname, category)
	if err != nil {
		return nil, err
	}
	return errorfs.WrapFile(f, errorfs.InjectorFunc(func(op errorfs.Op) error {
		op.Path = newname
		return fs.see(op)
	})), nil
}

func (fs *faultFS) Unwrap() vfs.FS { return fs.FS }

// TestFaultsReachRecycledLogs has a write fail in a log that was used before: without faultFS it would succeed.
func TestFaultsReachRecycledLogs(t *testing.T) {
	t.Parallel()
	var reused, broken atomic.Bool
	var published atomic.Int64
	fs := newFaultFS(vfs.NewMem(), func(op errorfs.Op) error {
		if op.Kind == errorfs.OpReuseForWrite {
			reused.Store(true)
		}
		if broken.Load() && op.Kind == errorfs.OpFileWrite && strings.HasSuffix(op.Path, ".log") {
			return syscall.EIO
		}
		return nil
	})
	d := open(t, Options{Dir: "/store", fs: fs})
	publish := func() error {
		_, err := d.Publish(ctx, []*driver.Message{{ID: fmt.Sprint("m", published.Add(1)), Topic: "jobs", Body: []byte("x")}},
			driver.PublishOptions{})
		return err
	}
	for n := 0; !reused.Load(); n++ {
		if err := publish(); err != nil {
			t.Fatalf("Publish: %v", err)
		}
		if err := d.store.db.Flush(); err != nil || n > 100 {
			t.Fatalf("no log was used again after %d flushes: %v", n, err)
		}
	}
	broken.Store(true)
	if err := publish(); !errors.Is(err, driver.ErrUnknown) {
		t.Errorf("Publish with a broken log: %v, want ErrUnknown", err)
	}
	_ = d.Close(ctx) // says that the store stopped
}
