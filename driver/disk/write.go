package disk

import (
	"bytes"
	"errors"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

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
	if err := errors.Join(b.Set(markKey, s.mark, nil), b.Commit(pebble.Sync), s.failure.get()); err != nil {
		return err
	}
	s.readable.Store(s.written)
	if slices.ContainsFunc(bs, func(x *batch) bool { return x.swept != nil }) {
		if !s.space.tight() {
			_, err = s.db.AsyncFlush() // only what is in a table lets Pebble drop other tables
		}
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

// recycle keeps the memory of batches that were written.
func (s *store) recycle(bs []*batch) {
	for _, b := range bs {
		clear(b.latest)
		*b = batch{latest: b.latest[:0], room: b.room[:0]}
		s.spare.Put(b)
	}
}
