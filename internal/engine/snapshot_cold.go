package engine

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
)

// What is cold is described in chunks of its own, behind those of the messages: one for the stretches, and others for
// the tables of ids, as they are.

// coldChunks is where their numbers begin.
const coldChunks = 1 << 63

const coldChunkSize = 256 << 10

// snapshotCold writes the chunks, and returns how many.
func (t *topic) snapshotCold(ctx context.Context, now moment) (chunks int, err error) {
	if t.cold.count == 0 {
		return 0, nil
	}
	w := writing(nil, now)
	put := func() error {
		key := appendNumberKey(nil, t.journal.number, kindIndex, coldChunks+uint64(chunks))
		chunks++
		err := t.e.put(ctx, key, w.seal())
		w = writing(w.data, now)
		return err
	}
	t.storedCold().walk(&w)
	if err := put(); err != nil {
		return chunks, err
	}
	for n := range t.cold.ids.tables {
		w.data = t.cold.ids.appendTable(w.data, n)
		if len(w.data) >= coldChunkSize || n == coldTables-1 {
			if err := put(); err != nil {
				return chunks, err
			}
		}
	}
	return chunks, nil
}

// appendTable appends one table: its number, how many slots are used, and those.
func (x *coldIDs) appendTable(dst []byte, n int) []byte {
	t := &x.tables[n]
	if t.Len() == 0 {
		return dst
	}
	dst = binary.AppendUvarint(dst, uint64(n))
	dst = binary.AppendUvarint(dst, uint64(t.Len()))
	for half, at := range t.All() {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(at)<<32|uint64(half))
	}
	return dst
}

// storedCold is what the chunks say.
type storedCold struct {
	tail   *coldTail
	groups []coldGroup
}

// coldGroup is how many cold messages a group has.
type coldGroup struct {
	number uint32
	cold   int64
}

func (t *topic) storedCold() *storedCold {
	s := &storedCold{tail: &t.cold}
	for _, g := range t.groups {
		s.groups = append(s.groups, coldGroup{g.number, g.cold})
	}
	return s
}

// walk goes over the first chunk.
func (s *storedCold) walk(w *walk) {
	c, n := s.tail, uint64(len(s.groups))
	w.uints(&c.ids.seed, &c.ids.base, &n)
	for i := 0; uint64(i) < n && w.err == nil; i++ {
		if w.reading {
			s.groups = append(s.groups, coldGroup{})
		}
		count(w, &s.groups[i].number, math.MaxUint32)
		count(w, &s.groups[i].cold, 1<<62)
	}
	for i := range c.stretches {
		c.stretches[i].walk(w)
	}
	for last := uint64(0); w.more(); {
		var x stretch
		if x.walk(w); x.first <= last || x.last < x.first || x.count == 0 {
			w.fail(fmt.Errorf("the stretch from 0-%d to 0-%d is not one", x.first, x.last))
		}
		last = x.last
		c.count += x.count
		c.keys.least = x.lastPlace // nothing is known of their keys
		c.stretches = append(c.stretches, x)
	}
}

func (s *stretch) walk(w *walk) {
	w.uints(&s.first, &s.last)
	count(w, &s.count, 1<<40)
	count(w, &s.bytes, 1<<62)
	w.uints(&s.place, &s.lastPlace)
	w.tick(&s.due)
	w.flags(&s.recorded)
}

// readCold reads one chunk into s; the first one is the first that is written.
func readCold(number uint64, record []byte, s *storedCold, now moment) error {
	w := unseal(record, recordVersion, now)
	if number == coldChunks {
		s.walk(w)
	} else {
		s.tail.ids.readTables(w)
	}
	return w.end()
}

func (x *coldIDs) readTables(w *walk) {
	x.makeTables()
	for w.more() {
		var n, used int
		count(w, &n, coldTables-1)
		if count(w, &used, 1<<30); len(w.data) < 8*used {
			w.fail(errCutOff)
		}
		for ; used > 0 && w.err == nil; used-- {
			slot := binary.LittleEndian.Uint64(w.data)
			if w.data = w.data[8:]; slot == 0 {
				w.fail(fmt.Errorf("table %d of the ids has an empty slot", n))
				return
			}
			x.insert(&x.tables[n], max(1, uint32(slot)), uint32(slot>>32))
		}
	}
}
