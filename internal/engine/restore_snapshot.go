package engine

// readIndex restores all messages from the chunks that Close wrote, and reports whether it did: if one of them is
// damaged or missing, what was restored is of no use.
//
// Mark and chunks are removed before anything of the topic changes: batches are written in their order, so as long as
// the mark is there it is true.
func (r *restorer) readIndex() bool {
	store, found := r.t.e.o.Store, false
	from, to := rangeOf(r.number, kindIndex)
	x := indexReader{now: r.now, use: r.restore, cold: storedCold{tail: &coldTail{}}}
	// If cold messages are described, all others that are described are to be in memory.
	err := store.Read([][]byte{appendNumberKey(nil, r.number, kindIndex, coldChunks)}, func(_ int, chunk []byte) {
		r.warm = chunk != nil
	})
	if err == nil {
		err = store.Scan(from, to, func(key, value []byte) error {
			found = true
			return x.read(key, value)
		})
	}
	if found {
		b := store.Batch()
		b.DeleteRange(from, to)
		store.Append(b, false)
	}
	return found && err == nil && x.missing == 0 && (!r.warm || r.restoreCold(&x.cold))
}

// indexReader reads the mark of an index, which comes first, and its chunks.
type indexReader struct {
	now     moment
	use     func(f *found, s *storedState)
	missing mark // how many more chunks the mark tells of than were read
	cold    storedCold
}

func (x *indexReader) read(key, value []byte) error {
	number, _, chunk := numberOf(key)
	if !chunk {
		return readRecord(value, &x.missing, x.now)
	}
	x.missing--
	if number >= coldChunks {
		return readCold(number, value, &x.cold, x.now)
	}
	return readChunk(value, x.now, x.use)
}
