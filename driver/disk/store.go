package disk

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ferrymq/ferry/internal/engine"
)

// store is the engine's store over Pebble.
type store struct {
	db    *pebble.DB
	cache *pebble.Cache
	lock  *pebble.Lock
	fs    *walFS
	c     *committer
	space *space
	log   *fatalLogger

	failure   *failure
	reclaimer *reclaimer
	readers   readers
	layers    int // of tables that Pebble leaves alone

	written  uint64        // the number of the newest write; the writer's own
	mark     []byte        // scratch of the writer
	spare    sync.Pool     // of *batch: 9 allocations for a publish instead of 13 (BenchmarkPublish/ferry/callers=1)
	readable atomic.Uint64 // written, as others see it
	synced   atomic.Uint64

	unreadable atomic.Bool // Pebble panicked over a damaged file, and is not trusted to close
}

var _ engine.Store = (*store)(nil)

// Sizes of Pebble. The write buffer bounds how much log is read when the store is opened.
const (
	writeBuffer = 32 << 20
	blockCache  = 32 << 20
	mergeUpTo   = 4 << 20  // bytes of steps in one write
	tableBlock  = 32 << 10 // of messages, which are mostly read one after the other

	// New tables lie in layers where they overlap, which those of messages do not. Most messages are gone before they
	// would be moved below, so that waits until more layers than usual have to be read, or there are 500 tables.
	usualLayers = 12
	mostLayers  = 64 // writes wait beyond
)

func newStore(below vfs.FS, private bool, log *slog.Logger) *store {
	f := &failure{stopped: make(chan struct{})}
	fs := &walFS{FS: below, private: private, failure: f, logs: map[*walFile]struct{}{}, closing: make(chan struct{})}
	l := &fatalLogger{log: log, failure: f, trouble: make(chan struct{}, 1), troubled: fs.troubled}
	return &store{fs: fs, failure: f, log: l}
}

func openStore(dir *directory, o Options) (*store, error) {
	below := dir.fs
	if dir.real {
		b := &ballast{path: filepath.Join(dir.path, reserveName), size: min(o.Reserve/8, mostBallast), log: o.Logger}
		if err := b.layOut(dir, o.Reserve); err != nil {
			return nil, dir.errUnusable(err)
		}
		below = b.below(below)
	}
	s := newStore(below, dir.real, o.Logger)
	s.space, s.layers = &space{fs: dir.fs, path: dir.path, reserve: uint64(o.Reserve)}, cmp.Or(o.layers, usualLayers)
	err := s.fs.MkdirAll(dir.data, dirMode)
	if err == nil {
		err = syncDir(dir.fs, dir.path)
	}
	if err == nil {
		s.lock, err = pebble.LockDirectory(dir.data, s.fs)
	}
	if err != nil {
		return nil, dir.errUnusable(err)
	}
	s.cache = pebble.NewCache(blockCache)
	if err := s.openPebble(dir); err != nil {
		s.cache.Unref()
		return nil, errors.Join(dir.errUnusable(err), s.lock.Close())
	}
	every := o.Sync.every
	if o.Sync.always() {
		every = lazily
	}
	s.reclaimer = newReclaimer(s.db, s.space)
	s.c = newCommitter(s.write, s.sync, every, s.failure)
	s.fs.opened.Store(true)
	return s, nil
}

// options are those of Pebble.
func (s *store) options(readOnly bool) *pebble.Options {
	o := &pebble.Options{
		FS: s.fs, Lock: s.lock, Cache: s.cache, Logger: s.log, EventListener: s.log.listener(), ReadOnly: readOnly,
		FormatMajorVersion:          pebble.FormatColumnarBlocks, // later ones put into the log what they believe is synced
		MemTableSize:                writeBuffer,
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       s.layers,
		L0StopWritesThreshold:       mostLayers,
	}
	o.Levels[0].BlockSize = tableBlock // as in the levels below
	o.Experimental.SpanPolicyFunc = spanOf
	return o
}

func (s *store) openPebble(dir *directory) error {
	err := s.refuseDamage(dir)
	if err != nil {
		return err
	}
	if s.db, err = s.log.open(dir.data, s.options(false)); err != nil {
		return err
	}
	if s.written, err = storedMark(s.db); err != nil {
		return errors.Join(err, s.closeUnreadable())
	}
	return nil
}

// closeUnreadable closes a Pebble that cannot read its own records, and is not trusted to return: after a while it is
// given up.
func (s *store) closeUnreadable() error {
	select {
	case err := <-inBackground(func() error { s.fs.hurry(); return s.db.Close() }):
		return err
	case <-time.After(closePatience):
		s.cache.Ref() // it is left to it
		return errors.New("pebble did not close")
	}
}

// inBackground calls f in a goroutine of its own, which may never return.
func inBackground(f func() error) <-chan error {
	done := make(chan error, 1)
	go func() {
		err := errors.New("pebble did not return")
		defer func() { // also when Fatalf ends this goroutine
			if p := recover(); p != nil {
				err = fmt.Errorf("pebble did not return: %v", p)
			}
			done <- err
		}()
		err = f()
	}()
	return done
}

// sync forces what was written to the disk.
func (s *store) sync() error {
	n := s.readable.Load()
	if err := s.fs.sync(); err != nil {
		return err
	}
	s.synced.Store(n)
	return nil
}

// close ends the store. A Pebble that failed is not trusted to close: its files are given up after a while.
func (s *store) close() error {
	closed := inBackground(s.shut)
	var err error
	failed := s.failure.stopped
	if s.unreadable.Load() {
		failed = make(chan struct{})
		close(failed)
	}
	select {
	case err = <-closed:
	case <-failed:
		select {
		case err = <-closed:
		case <-time.After(closePatience):
			return errors.Join(s.failure.get(), s.lock.Close()) // its cache is left to it
		}
	}
	s.cache.Unref()
	return errors.Join(cmp.Or(s.failure.get(), err), s.lock.Close())
}

const closePatience = 2 * time.Second

// shut writes what is left, and closes Pebble when everybody has left it.
func (s *store) shut() error {
	failure := s.c.close()
	if failure == nil {
		s.reclaimer.close()
	} else {
		s.reclaimer.cancel() // Pebble is not trusted to return
	}
	s.readers.shut()
	if failure == nil {
		s.flush()
	}
	s.fs.hurry()
	return s.db.Close()
}

// flush makes tables of what is in the log, so that there is none to read when the store is opened. Where there is
// little room that waits.
func (s *store) flush() {
	if s.space.tight() {
		return
	}
	select {
	case <-s.log.trouble: // an old one
	default:
	}
	flushed, err := s.db.AsyncFlush()
	if err != nil {
		return
	}
	select {
	case <-flushed:
	case <-s.log.trouble:
	case <-s.failure.stopped:
	}
}

// Batch returns an empty batch.
func (s *store) Batch() engine.Batch {
	b, ok := s.spare.Get().(*batch)
	if !ok {
		b = &batch{}
	}
	b.b = s.db.NewBatch()
	return b
}

// Append takes over a batch.
func (s *store) Append(b engine.Batch, synced bool) engine.Round {
	own, _ := b.(*batch) // nil if b is
	return s.c.append(own, synced)
}

// Stopped is closed when a write has failed.
func (s *store) Stopped() <-chan struct{} { return s.failure.stopped }

// Failure says why a write has failed, or nil.
func (s *store) Failure() error { return s.failure.get() }

// Room says why no more messages can be stored.
func (s *store) Room() error { return s.space.room() }
