package guard

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// DirOptions of OpenDir.
type DirOptions struct {
	// MaxKeys is as for a Memory store.
	MaxKeys int
	// CompactAt is how large the journal grows before it is rewritten, if most of it is outdated. Defaults to 4 MiB.
	CompactAt int64
}

// dirStore is a store inside this process that keeps blocks, penalties, overrides, the whitelist, marks of what was
// done, forced breakers and the audit list in a directory. They survive kill -9 and power loss: every such change is
// synced before it is acknowledged, many together in one step. Windows and slots start empty.
type dirStore struct {
	path string
	lock *os.File
	at   int64 // CompactAt

	mu      sync.Mutex
	ledger  *ledger
	pending []byte  // lines that are not in the file yet
	batch   *commit // of those lines
	failed  error   // the file can no longer be trusted
	closed  bool

	wake  chan struct{} // there is a batch, or the end
	ended chan struct{} // the writer has returned

	// Owned by the writer.
	file *os.File
	size int64
	live int64 // size after the last compaction
}

// commit is one write with its fsync, which all who have lines in it wait for.
type commit struct {
	done chan struct{}
	err  error
}

// JournalName is the file of a store in a directory that holds everything.
const JournalName = "guard.journal"

const lockName = "guard.lock"

// OpenDir opens the store in a directory, which it creates if needed. One process owns a directory at a time.
func OpenDir(path string, o DirOptions) (Store, error) {
	if path == "" {
		return nil, driver.NewError(driver.ErrInvalid, "the guard store has no directory", "give the path of one", nil)
	}
	if o.CompactAt <= 0 {
		o.CompactAt = 4 << 20
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, errDir(path, err)
	}
	lock, err := lockDir(path)
	if err != nil {
		return nil, err
	}
	d := &dirStore{path: path, lock: lock, at: o.CompactAt, ledger: newLedger(time.Now(), o.MaxKeys),
		wake: make(chan struct{}, 1), ended: make(chan struct{})}
	if err := d.load(); err != nil {
		return nil, errors.Join(err, unlock(lock))
	}
	d.ledger.keep = d.append
	go d.writer()
	return d, nil
}

func errDir(path string, err error) error {
	return driver.NewError(driver.ErrInvalid, fmt.Sprintf("the guard store in %s cannot be used", path),
		"look at the path and its permissions", err)
}

func lockDir(path string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, errDir(path, err)
	}
	if err := tryLock(f); err != nil {
		_ = f.Close()
		return nil, driver.NewError(driver.ErrConflict,
			fmt.Sprintf("the guard store in %s is in use by another process", path),
			"stop that process, ask it through its Admin, or use a Redis store, which many processes share", err)
	}
	return f, nil
}

// load reads the journal and cuts off what a crash left half-written.
func (d *dirStore) load() error {
	f, err := os.OpenFile(filepath.Join(d.path, JournalName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return errDir(d.path, err)
	}
	now := time.Now()
	whole, err := readJournal(f, func(e entry) { d.ledger.replay(now, e) })
	if err == nil {
		err = f.Truncate(whole)
	}
	if err == nil {
		_, err = f.Seek(whole, 0)
	}
	if err == nil {
		err = errors.Join(f.Sync(), syncDir(d.path))
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	d.file, d.size, d.live = f, whole, whole
	return nil
}

func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// append queues an entry for the file. d.mu is held.
func (d *dirStore) append(e entry) {
	lines, err := appendLine(d.pending, e)
	if err != nil {
		d.failed = err
		return
	}
	d.pending = lines
	if d.batch == nil {
		d.batch = &commit{done: make(chan struct{})}
	}
}

// do runs a step on the ledger, and waits until what it changed for good is on disk.
func (d *dirStore) do(ctx context.Context, step func(l *ledger, now time.Time) error) error {
	now := time.Now()
	d.mu.Lock()
	if err := d.usable(); err != nil {
		d.mu.Unlock()
		return err
	}
	before := len(d.pending)
	err := step(d.ledger, now)
	if err != nil || len(d.pending) == before {
		d.mu.Unlock()
		return err
	}
	mine := d.batch
	d.mu.Unlock()
	d.rouse()
	select {
	case <-mine.done:
		return mine.err
	case <-ctx.Done():
		return driver.NewError(driver.ErrUnknown, "the change was not synced in time", "look at the disk", context.Cause(ctx))
	}
}

func (d *dirStore) usable() error {
	switch {
	case d.closed:
		return driver.NewError(driver.ErrClosed, "the guard store is closed", "open it again", nil)
	case d.failed != nil:
		return driver.NewError(driver.ErrNotApplied, "the guard journal could not be written",
			"look at the disk, then start the process again", d.failed)
	}
	return nil
}

func (d *dirStore) rouse() {
	select {
	case d.wake <- struct{}{}:
	default: // it is on its way
	}
}

// writer writes batches until the store is closed and nothing is left.
func (d *dirStore) writer() {
	defer close(d.ended)
	for range d.wake {
		for d.writeBatch() {
		}
		d.mu.Lock()
		over := d.closed && d.batch == nil
		d.mu.Unlock()
		if over {
			return
		}
	}
}

// writeBatch writes what has gathered, and reports whether there was anything.
func (d *dirStore) writeBatch() bool {
	d.mu.Lock()
	lines, batch, err := d.pending, d.batch, d.failed
	d.pending, d.batch = nil, nil
	var snapshot []entry
	if batch != nil && err == nil && d.size+int64(len(lines)) > max(d.at, 4*d.live) {
		snapshot = d.ledger.snapshot(time.Now()) // says what the lines say, too
	}
	d.mu.Unlock()
	if batch == nil {
		return false
	}
	if err == nil {
		err = d.persist(lines, snapshot)
	}
	if err != nil {
		d.mu.Lock()
		d.failed = err
		d.mu.Unlock()
		batch.err = driver.NewError(driver.ErrUnknown, "the guard journal could not be written",
			"look at the disk, then start the process again", err)
	}
	close(batch.done)
	return true
}

// persist appends lines, or replaces the file by a snapshot.
func (d *dirStore) persist(lines []byte, snapshot []entry) error {
	if snapshot != nil {
		return d.compact(snapshot)
	}
	if _, err := d.file.Write(lines); err != nil {
		return err
	}
	d.size += int64(len(lines))
	return d.file.Sync()
}

// compact writes a new file beside the old one, which stays until the new one is whole.
func (d *dirStore) compact(snapshot []entry) error {
	name := filepath.Join(d.path, JournalName)
	var lines []byte
	var err error
	for _, e := range snapshot {
		if lines, err = appendLine(lines, e); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(name+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.Write(lines); err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = os.Rename(name+".new", name)
	}
	if err == nil {
		err = syncDir(d.path)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	old := d.file
	d.file, d.size, d.live = f, int64(len(lines)), int64(len(lines))
	return old.Close()
}

// Close implements Store. It waits for what is being written.
func (d *dirStore) Close(ctx context.Context) error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	d.mu.Unlock()
	d.rouse()
	select {
	case <-d.ended:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return errors.Join(d.file.Close(), unlock(d.lock))
}
