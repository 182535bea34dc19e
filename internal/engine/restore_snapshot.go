package engine

import (
	"errors"
	"fmt"
)

// readIndex restores all messages from the chunks that Close wrote, and reports whether it did: if one of them is
// damaged or missing, none is used.
func (r *restorer) readIndex() (bool, error) {
	chunks, err := r.marked()
	if err != nil || chunks == 0 || !r.wholeIndex(chunks) {
		return false, err
	}
	if r.warm, err = r.hasCold(); err != nil {
		return false, err
	}
	n, stored := 0, &storedCold{tail: &coldTail{}}
	err = r.scanIndex(func(number uint64, chunk []byte) error {
		if number >= coldChunks {
			return readCold(number, chunk, stored, r.now)
		}
		return readChunk(chunk, r.now, func(f *found, s *storedState) {
			r.restore(f, s)
			if n++; n%progressEvery == 0 && r.progress != nil {
				r.progress(r.t.name, n)
			}
		})
	})
	if err == nil && r.warm {
		err = r.restoreCold(stored)
	}
	return true, err
}

// marked returns how many chunks the mark behind them tells of; none if there is no mark.
func (r *restorer) marked() (chunks int, err error) {
	err = r.t.e.o.Store.Read([][]byte{appendPrefix(nil, r.number, kindIndex)}, func(_ int, value []byte) {
		var m mark
		if readRecord(value, &m, r.now) == nil {
			chunks = int(m)
		}
	})
	return chunks, err
}

// wholeIndex reports whether all chunks are there, and their checksums are right.
func (r *restorer) wholeIndex(chunks int) bool {
	err := r.scanIndex(func(_ uint64, chunk []byte) error {
		chunks--
		return unseal(chunk, recordVersion, r.now).err
	})
	return err == nil && chunks == 0
}

func (r *restorer) scanIndex(use func(number uint64, chunk []byte) error) error {
	from, to := rangeOf(r.number, kindIndex)
	return r.t.e.o.Store.Scan(from, to, func(key, value []byte) error {
		if len(key) == prefixSize {
			return nil // the mark
		}
		number, _, _ := numberOf(key)
		if err := use(number, value); err != nil {
			return damaged(fmt.Sprintf("chunk %x of the index of topic %q is damaged", key, r.t.name), err)
		}
		return nil
	})
}

// clearIndex removes mark and chunks before anything of the topic changes: batches are written in their order, so as
// long as the mark is there it is true.
func (r *restorer) clearIndex() error {
	from, to := rangeOf(r.number, kindIndex)
	found := errors.New("found")
	err := r.t.e.o.Store.Scan(from, to, func(_, _ []byte) error { return found })
	if !errors.Is(err, found) {
		return err
	}
	b := r.t.e.o.Store.Batch()
	b.DeleteRange(from, to)
	r.t.e.o.Store.Append(b, false)
	return nil
}
