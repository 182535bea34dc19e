package disk

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// walFS takes the decision when the write-ahead log is synced away from Pebble, which knows two kinds of writes: those
// it keeps in a buffer of its own, and those it syncs. What we need most is between them: handed to the operating
// system, so that it survives the process, and synced later or by others. So Pebble is told to sync everything, its
// syncs of the log do nothing, and the committer syncs the log itself. A log that is closed is always synced.
//
// Pebble answers errors of its log by ending the process, in places where nothing else can be done. So it is not told
// of them: the first one stops the store, from then on nothing reaches a log, and whoever waits for a write gets the
// error.
//
// It also makes every file private to its owner, whatever the umask, and slows down what fails in the background.
type walFS struct {
	vfs.FS
	private bool          // on a real file system
	pause   atomic.Int64  // until when no other file is made
	closing chan struct{} // nothing is slowed down any more

	opened  atomic.Bool // before that Pebble is told of errors, which it can return
	failure *failure

	mu   sync.Mutex
	logs map[*walFile]struct{} // open
}

// fail stops the store because of an error of a log, and returns what Pebble is told.
func (fs *walFS) fail(err error) error {
	if err == nil || !fs.opened.Load() {
		return err
	}
	fs.failure.set(err)
	return nil
}

// retryAfter is how long Pebble waits before it makes another file when a flush or compaction has failed: by itself it
// tries again at once, for ever.
const retryAfter = 100 * time.Millisecond

// troubled notes that a flush or compaction has failed.
func (fs *walFS) troubled() { fs.pause.Store(time.Now().Add(retryAfter).UnixNano()) }

// slowDown waits if something failed just now.
func (fs *walFS) slowDown() {
	wait := time.Until(time.Unix(0, fs.pause.Load()))
	if wait <= 0 {
		return
	}
	select {
	case <-time.After(wait):
	case <-fs.closing:
	}
}

// hurry ends all pauses.
func (fs *walFS) hurry() { close(fs.closing) }

const (
	walCategory = "pebble-wal"
	// markerPrefix begins the names of files that say which other file counts. Pebble makes both and then syncs the
	// directory; where a file system does not keep the order of its entries, a crash could leave the marker alone. So
	// the directory is synced before a marker is made as well.
	markerPrefix = "marker."
)

// refuseLink refuses a link in the place of a file that is to be written: it would be written to where that leads.
func (fs *walFS) refuseLink(name string) error {
	if !fs.private {
		return nil
	}
	if info, err := os.Lstat(name); err == nil && info.Mode()&os.ModeSymlink != 0 {
		return fmt.Errorf("%s is a symbolic link", name)
	}
	return nil
}

// Create makes a file.
func (fs *walFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := fs.refuseLink(name); err != nil {
		return nil, err
	}
	if strings.HasPrefix(fs.PathBase(name), markerPrefix) {
		if err := syncDir(fs.FS, fs.PathDir(name)); err != nil {
			return nil, err
		}
	}
	if category != walCategory {
		fs.slowDown()
	} else if fs.failure.get() != nil {
		return fs.nowhere()
	}
	f, err := fs.FS.Create(name, category)
	return fs.made(name, f, err, category)
}

// ReuseForWrite makes a file from one that is no longer needed.
func (fs *walFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if category == walCategory && fs.failure.get() != nil {
		return fs.nowhere()
	}
	f, err := fs.FS.ReuseForWrite(oldname, newname, category)
	return fs.made(newname, f, err, category)
}

// OpenReadWrite opens a file, and makes it if need be.
func (fs *walFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	if err := fs.refuseLink(name); err != nil {
		return nil, err
	}
	f, err := fs.FS.OpenReadWrite(name, category, opts...)
	return fs.made(name, f, err, category)
}

// MkdirAll makes a directory that only its owner may enter.
func (fs *walFS) MkdirAll(dir string, _ os.FileMode) error { return fs.FS.MkdirAll(dir, dirMode) }

// Lock locks a file.
func (fs *walFS) Lock(name string) (io.Closer, error) {
	if err := fs.refuseLink(name); err != nil {
		return nil, err
	}
	l, err := fs.FS.Lock(name)
	if err == nil && fs.private {
		err = os.Chmod(name, fileMode)
	}
	return l, err
}

// Unwrap returns the file system below.
func (fs *walFS) Unwrap() vfs.FS { return fs.FS }

func (fs *walFS) made(name string, f vfs.File, err error, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err == nil && fs.private {
		if err = os.Chmod(name, fileMode); err != nil { // no window: nobody else can enter the directory
			f, err = nil, errors.Join(err, f.Close())
		}
	}
	switch {
	case err != nil && category == walCategory && fs.fail(err) == nil:
		return fs.nowhere()
	case err != nil || category != walCategory:
		return f, err
	}
	w := &walFile{File: f, fs: fs}
	fs.mu.Lock()
	fs.logs[w] = struct{}{}
	fs.mu.Unlock()
	return w, nil
}

// nowhere returns a log of a store that has failed: nothing is kept of it.
func (fs *walFS) nowhere() (vfs.File, error) {
	f, err := vfs.NewMem().Create("log", walCategory)
	return &walFile{File: f, fs: fs}, err
}

// sync makes everything survive a power loss that was written to logs before.
func (fs *walFS) sync() error {
	fs.mu.Lock()
	logs := make([]*walFile, 0, len(fs.logs))
	for w := range fs.logs {
		logs = append(logs, w)
	}
	fs.mu.Unlock()
	for _, w := range logs {
		if err := w.force(); err != nil {
			return err
		}
	}
	return nil
}

// walFile is a log. Writes come from Pebble, syncs from the committer, at the same time.
type walFile struct {
	vfs.File
	fs    *walFS
	dirty atomic.Bool

	mu     sync.Mutex // held across a sync: a file must not be closed in the middle of one
	closed bool
	err    error // of the first sync that failed: after one nothing can be trusted
}

// Write hands data to the operating system.
func (w *walFile) Write(p []byte) (int, error) {
	if w.fs.failure.get() != nil {
		return len(p), nil
	}
	n, err := w.File.Write(p)
	w.dirty.Store(true)
	if err != nil && w.fs.fail(err) == nil {
		return len(p), nil
	}
	return n, err
}

// Sync does nothing: see walFS.
func (w *walFile) Sync() error { return nil }

// SyncData does nothing: see walFS.
func (w *walFile) SyncData() error { return nil }

// SyncTo does nothing: see walFS.
func (w *walFile) SyncTo(int64) (bool, error) { return false, nil }

// Close syncs and closes the log.
func (w *walFile) Close() error {
	err := w.force()
	w.fs.mu.Lock()
	delete(w.fs.logs, w)
	w.fs.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	return w.fs.fail(errors.Join(err, w.File.Close()))
}

func (w *walFile) force() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil || w.closed || !w.dirty.Swap(false) {
		return w.err
	}
	w.err = w.File.SyncData()
	return w.err
}
