package disk

import (
	"bytes"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

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

	reclaimer *reclaimer

	written  uint64        // the number of the newest write; the writer's own
	mark     []byte        // scratch of the writer
	spare    sync.Pool     // of *batch
	readable atomic.Uint64 // written, as others see it
	synced   atomic.Uint64
}

var _ engine.Store = (*store)(nil)

// Sizes of Pebble. The write buffer bounds how much log is read when the store is opened.
const (
	writeBuffer = 32 << 20
	blockCache  = 32 << 20
	mergeUpTo   = 4 << 20 // bytes of steps in one write
)

func openStore(dir *directory, o Options) (*store, error) {
	s := &store{fs: newWALFS(dir.fs, dir.real), space: newSpace(dir, o.Reserve), log: &fatalLogger{log: o.Logger}}
	if err := s.fs.MkdirAll(dir.data, dirMode); err != nil {
		return nil, dir.errUnusable(err)
	}
	if err := syncDir(dir.fs, dir.path); err != nil {
		return nil, dir.errUnusable(err)
	}
	lock, err := pebble.LockDirectory(dir.data, s.fs)
	if err != nil {
		return nil, dir.errUnusable(err)
	}
	s.lock, s.cache = lock, pebble.NewCache(blockCache)
	if err := s.openPebble(dir); err != nil {
		s.cache.Unref()
		return nil, errors.Join(dir.errUnusable(err), lock.Close())
	}
	every := o.Sync.every
	if o.Sync.always() {
		every = lazily
	}
	s.reclaimer = newReclaimer(s.db)
	s.c = newCommitter(s.write, s.sync, every)
	s.log.failed = s.c.fail
	return s, nil
}

// options are those of Pebble.
func (s *store) options() *pebble.Options {
	o := &pebble.Options{
		FS: s.fs, Lock: s.lock, Cache: s.cache, Logger: s.log,
		// By default damage is fatal. Whoever reads it gets an error here, and everything else goes on.
		EventListener:               &pebble.EventListener{DataCorruption: s.log.damage},
		FormatMajorVersion:          pebble.FormatColumnarBlocks, // later ones put into the log what they believe is synced
		MemTableSize:                writeBuffer,
		MemTableStopWritesThreshold: 4,
	}
	o.Experimental.SpanPolicyFunc = spanOf
	return o
}

func (s *store) openPebble(dir *directory) error {
	err := s.refuseDamage(dir)
	if err != nil {
		return err
	}
	if s.db, err = s.log.guard(func() (*pebble.DB, error) { return pebble.Open(dir.data, s.options()) }); err != nil {
		return err
	}
	if s.written, err = storedMark(s.db); err != nil {
		return errors.Join(err, s.db.Close())
	}
	return nil
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
	failure := s.c.close()
	if failure == nil {
		s.reclaimer.close()
	} else {
		s.reclaimer.cancel() // Pebble is not trusted to return
	}
	closed := make(chan error, 1)
	go func() {
		err := errors.New("pebble did not close")
		defer func() { closed <- err }() // also when Fatalf ends this goroutine
		if failure == nil {
			err = s.db.Flush() // so that there is no log to read when it is opened
		}
		err = errors.Join(err, s.db.Close())
	}()
	if failure == nil {
		err := <-closed
		s.cache.Unref()
		return errors.Join(err, s.lock.Close())
	}
	select {
	case <-closed:
	case <-time.After(closePatience):
	}
	return errors.Join(failure, s.lock.Close())
}

const closePatience = 2 * time.Second

// Batch returns an empty batch.
func (s *store) Batch() engine.Batch {
	b, ok := s.spare.Get().(*batch)
	if !ok {
		b = &batch{}
	}
	b.b = s.db.NewBatch()
	return b
}

// recycle keeps the memory of batches that were written.
func (s *store) recycle(bs []*batch) {
	for _, b := range bs {
		clear(b.latest)
		*b = batch{latest: b.latest[:0], room: b.room[:0]}
		s.spare.Put(b)
	}
}

// Append takes over a batch.
func (s *store) Append(b engine.Batch, synced bool) engine.Round {
	if b == nil {
		return s.c.append(nil, synced)
	}
	return s.c.append(b.(*batch), synced)
}

// Stopped is closed when a write has failed.
func (s *store) Stopped() <-chan struct{} { return s.c.stopped }

// Failure says why a write has failed, or nil.
func (s *store) Failure() error { return s.c.failed() }

// Room says why no more messages can be stored.
func (s *store) Room() error { return s.space.room() }

// Read looks keys up. Several are read in their order by one iterator, which finds the next one near the last.
func (s *store) Read(keys [][]byte, use func(i int, value []byte)) error {
	if len(keys) < 2 {
		return s.readEach(keys, use)
	}
	order := make([]int, len(keys))
	for i := range order {
		order[i] = i
	}
	byKey := func(a, b int) int { return bytes.Compare(keys[a], keys[b]) }
	if !slices.IsSortedFunc(order, byKey) {
		slices.SortFunc(order, byKey)
	}
	return s.readSorted(keys, order, use)
}

func (s *store) readSorted(keys [][]byte, order []int, use func(i int, value []byte)) (err error) {
	last := keys[order[len(order)-1]]
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: keys[order[0]], UpperBound: append(bytes.Clone(last), 0)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for n, i := range order {
		// The next record is often the one that is wanted next.
		found := n > 0 && it.Valid() && it.Next() && bytes.Equal(it.Key(), keys[i])
		if !found && (!it.SeekGE(keys[i]) || !bytes.Equal(it.Key(), keys[i])) {
			if err := it.Error(); err != nil {
				return err
			}
			use(i, nil)
			continue
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		use(i, value)
	}
	return nil
}

func (s *store) readEach(keys [][]byte, use func(i int, value []byte)) error {
	for i, key := range keys {
		value, closer, err := s.db.Get(key)
		switch {
		case errors.Is(err, pebble.ErrNotFound):
			use(i, nil)
			continue
		case err != nil:
			return err
		}
		use(i, value)
		if err := closer.Close(); err != nil {
			return err
		}
	}
	return nil
}

// Scan walks over a range.
func (s *store) Scan(from, to []byte, use func(key, value []byte) error) (err error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for it.First(); it.Valid(); it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		if err := use(it.Key(), value); err != nil {
			return err
		}
	}
	return nil
}

// write hands batches to the operating system, in order. Each is applied whole.
func (s *store) write(bs []*batch) (err error) {
	for len(bs) > 0 && err == nil {
		n, size := 0, 0
		for n < len(bs) && (n == 0 || size+bs[n].b.Len() <= mergeUpTo) {
			size += bs[n].b.Len()
			n++
		}
		err = s.commit(bs[:n], size)
		bs = bs[n:]
	}
	return err
}

// commit applies batches as one. Pebble's sync only flushes its buffer: see walFS.
func (s *store) commit(bs []*batch, size int) (err error) {
	b, err := s.merge(bs, size)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if b.Empty() {
		return nil
	}
	s.written++
	s.mark = appendMark(s.mark[:0], s.written, s.synced.Load())
	if err := errors.Join(b.Set(markKey, s.mark, nil), b.Commit(pebble.Sync)); err != nil {
		return err
	}
	s.readable.Store(s.written)
	if slices.ContainsFunc(bs, func(x *batch) bool { return x.swept != nil }) {
		_, err = s.db.AsyncFlush() // only what is in a table lets Pebble drop other tables
		for _, x := range bs {
			s.reclaimer.note(x.swept)
		}
	}
	s.recycle(bs)
	return err
}

// merge makes one batch of several. What only the last one counts of stands where it would have stood.
func (s *store) merge(bs []*batch, size int) (*pebble.Batch, error) {
	b := bs[0].b
	if len(bs) > 1 {
		b = s.db.NewBatchWithSize(size + 256)
	}
	for i, x := range bs {
		if x.b != b {
			if err := errors.Join(b.Apply(x.b, nil), x.b.Close()); err != nil {
				return nil, err
			}
		}
		for _, l := range x.latest {
			if overwritten(l.key, bs[i+1:]) {
				continue
			}
			if err := b.Set(l.key, l.value, nil); err != nil {
				return nil, err
			}
		}
	}
	return b, nil
}

// overwritten reports whether a later batch sets the key again. The last one usually does.
func overwritten(key []byte, later []*batch) bool {
	for i := len(later) - 1; i >= 0; i-- {
		for _, l := range later[i].latest {
			if bytes.Equal(l.key, key) {
				return true
			}
		}
	}
	return false
}

// batch is the changes of one step.
type batch struct {
	b      *pebble.Batch
	latest []pair
	room   []byte // where the pairs are
	swept  []span // ranges that were removed
}

type pair struct{ key, value []byte }

// Set stores head and rest as one value.
func (b *batch) Set(key, head, rest []byte) {
	op := b.b.SetDeferred(len(key), len(head)+len(rest))
	copy(op.Key, key)
	copy(op.Value[copy(op.Value, head):], rest)
	_ = op.Finish() // fails for indexed batches only
}

// SetLatest stores a value, unless a later batch of the same round does.
func (b *batch) SetLatest(key, value []byte) {
	at := len(b.room)
	b.room = append(append(b.room, key...), value...)
	own := b.room[at:]
	b.latest = append(b.latest, pair{own[:len(key):len(key)], own[len(key):]})
}

// Delete removes a key.
func (b *batch) Delete(key []byte) { _ = b.b.Delete(key, nil) } // fails for indexed batches only

// DeleteRange removes a range of keys.
func (b *batch) DeleteRange(from, to []byte) {
	b.swept = append(b.swept, span{bytes.Clone(from), bytes.Clone(to)})
	_ = b.b.DeleteRange(from, to, nil)
}
