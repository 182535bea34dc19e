package engine

import (
	"context"
	"encoding/binary"
	"fmt"
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
	write := func(chunk []byte) error {
		key := appendNumberKey(nil, t.journal.number, kindIndex, coldChunks+uint64(chunks))
		chunks++
		return t.e.put(ctx, key, seal(chunk, 0))
	}
	if err := write(t.appendStretches([]byte{recordVersion}, now)); err != nil {
		return chunks, err
	}
	chunk := []byte{recordVersion}
	for n := range t.cold.ids.tables {
		chunk = t.cold.ids.appendTable(chunk, n)
		if len(chunk) >= coldChunkSize || n == coldTables-1 {
			if err := write(chunk); err != nil {
				return chunks, err
			}
			chunk = append(chunk[:0], recordVersion)
		}
	}
	return chunks, nil
}

func (t *topic) appendStretches(dst []byte, now moment) []byte {
	c := &t.cold
	for _, n := range [...]uint64{c.ids.seed, c.ids.base, uint64(len(t.groups))} {
		dst = binary.AppendUvarint(dst, n)
	}
	for _, g := range t.groups {
		dst = binary.AppendUvarint(dst, uint64(g.number))
		dst = binary.AppendUvarint(dst, uint64(g.cold))
	}
	for _, s := range c.stretches.vs {
		for _, n := range [...]uint64{s.first, s.last, uint64(s.count), uint64(s.bytes), s.place, s.lastPlace} {
			dst = binary.AppendUvarint(dst, n)
		}
		dst = appendBool(binary.AppendVarint(dst, now.stamp(s.due)), s.recorded)
	}
	return dst
}

// appendTable appends one table: its number, how many slots are used, and those.
func (x *coldIDs) appendTable(dst []byte, n int) []byte {
	if x.used[n] == 0 {
		return dst
	}
	dst = binary.AppendUvarint(dst, uint64(n))
	dst = binary.AppendUvarint(dst, uint64(x.used[n]))
	for _, slot := range x.tables[n] {
		if slot != 0 {
			dst = binary.LittleEndian.AppendUint64(dst, slot)
		}
	}
	return dst
}

// storedCold is what the chunks say.
type storedCold struct {
	tail   coldTail
	groups map[uint32]int64
}

// decodeCold reads one chunk into s; the first one is the first that is written.
func decodeCold(number uint64, record []byte, s *storedCold, now moment) error {
	r := unseal(record)
	if number == coldChunks {
		s.decodeStretches(r, now)
	} else {
		s.tail.ids.decodeTables(r)
	}
	return r.end()
}

func (s *storedCold) decodeStretches(r *reader, now moment) {
	c := &s.tail
	c.ids.seed, c.ids.base = r.uint(), r.uint()
	s.groups = map[uint32]int64{}
	for n := r.uint(); n > 0 && r.err == nil; n-- {
		number := r.uint32()
		s.groups[number] = int64(r.upTo(1 << 62))
	}
	for last := uint64(0); len(r.rest) > 0 && r.err == nil; {
		x := stretch{first: r.uint(), last: r.uint(), count: int(r.upTo(1 << 40)), bytes: int64(r.upTo(1 << 62)),
			place: r.uint(), lastPlace: r.uint()}
		x.due = now.read(r.int())
		x.recorded = r.bool()
		if r.err == nil && (x.first <= last || x.last < x.first || x.count == 0) {
			r.err = fmt.Errorf("the stretch from 0-%d to 0-%d is not one", x.first, x.last)
		}
		last = x.last
		c.count += x.count
		c.keys.least = x.lastPlace // nothing is known of their keys
		c.stretches.push(x)
	}
}

func (x *coldIDs) decodeTables(r *reader) {
	if x.tables == nil {
		x.tables, x.used = make([][]uint64, coldTables), make([]int32, coldTables)
	}
	for len(r.rest) > 0 && r.err == nil {
		n, used := r.upTo(coldTables-1), r.upTo(1<<30)
		if r.err != nil || uint64(len(r.rest)) < 8*used {
			r.err = errCutOff
			return
		}
		for ; used > 0; used-- {
			slot := binary.LittleEndian.Uint64(r.rest)
			if r.rest = r.rest[8:]; slot == 0 {
				r.err = fmt.Errorf("table %d of the ids has an empty slot", n)
				return
			}
			x.insert(n, slot)
		}
	}
}
