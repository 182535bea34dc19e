package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// recordVersion begins every record but messages, whose envelope has a version of its own.
const recordVersion = 1

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// storedRecord is what is stored under a key, between a version and a checksum. One function knows its fields, for both
// directions.
type storedRecord interface{ walk(w *walk) }

// writing begins a record in room that is used again.
func writing(room []byte, now moment) walk {
	return walk{data: append(room[:0], recordVersion), now: now}
}

// write returns the record of r, in the room of w: until that is used again.
func (w *walk) write(r storedRecord, now moment) []byte {
	*w = writing(w.data, now)
	r.walk(w)
	return w.seal()
}

// seal ends what was written with a checksum.
func (w *walk) seal() []byte {
	w.data = binary.LittleEndian.AppendUint32(w.data, crc32.Checksum(w.data, castagnoli))
	return w.data
}

// readRecord reads what write returned. Nothing of data is kept.
func readRecord(data []byte, r storedRecord, now moment) error {
	w := unseal(data, recordVersion, now)
	r.walk(w)
	return w.end()
}

var errCutOff = errors.New("the record is cut off")

// unseal checks version and checksum of a record, which has versions up to newest, to read what is between them.
func unseal(data []byte, newest byte, now moment) *walk {
	w := &walk{reading: true, now: now}
	end := len(data) - 4
	if end < 1 {
		w.err = errCutOff
		return w
	}
	if stored, computed := binary.LittleEndian.Uint32(data[end:]),
		crc32.Checksum(data[:end], castagnoli); stored != computed {
		w.err = fmt.Errorf("the checksum is %08x, but the content gives %08x", stored, computed)
		return w
	}
	if w.version = data[0]; w.version < recordVersion || w.version > newest {
		w.err = fmt.Errorf("the record has version %d, this program reads up to version %d", w.version, newest)
		return w
	}
	w.data = data[1:end]
	return w
}

// walk goes over the fields of a record in one order, and appends each to data or sets it from data: to zero, after the
// first error.
type walk struct {
	data    []byte // what was written, or is left to read
	reading bool
	version byte   // of what is read
	now     moment // ticks are stored as wall time, as seen now
	err     error
}

// fail keeps the first error, and reads nothing after it.
func (w *walk) fail(err error) {
	if w.err == nil {
		w.err = err
	}
	w.data = nil
}

// more reports whether something is left to read.
func (w *walk) more() bool { return w.reading && len(w.data) > 0 }

// later reports whether there is what records of older programs do not have: when one is written the caller knows.
func (w *walk) later(known bool) bool {
	if w.reading {
		return w.more()
	}
	return known
}

// end says what was wrong with a record that was read.
func (w *walk) end() error {
	if w.err == nil && len(w.data) > 0 {
		return fmt.Errorf("%d bytes are left over", len(w.data))
	}
	return w.err
}

// uints walks unsigned numbers.
func (w *walk) uints(ns ...*uint64) {
	if w.reading {
		for _, n := range ns {
			*n = w.readUint()
		}
		return
	}
	data := w.data
	for _, n := range ns {
		data = binary.AppendUvarint(data, *n)
	}
	w.data = data
}

func (w *walk) readUint() uint64 {
	v, size := binary.Uvarint(w.data)
	if size <= 0 {
		w.fail(errCutOff)
		return 0
	}
	w.data = w.data[size:]
	return v
}

// count walks a number that is not negative, and must not exceed most.
func count[N ~uint8 | ~uint16 | ~uint32 | ~int | ~int32 | ~int64](w *walk, n *N, most uint64) {
	if !w.reading {
		w.data = binary.AppendUvarint(w.data, uint64(*n))
		return
	}
	v := w.readUint()
	if v > most {
		w.fail(fmt.Errorf("the number %d is out of range", v))
		v = 0
	}
	*n = N(v)
}

// number walks a number that may be negative.
func number[N ~int | ~int8 | ~int64](w *walk, n *N) {
	if !w.reading {
		w.data = binary.AppendVarint(w.data, int64(*n))
		return
	}
	v, size := binary.Varint(w.data)
	if size <= 0 {
		v, size = 0, 0
		w.fail(errCutOff)
	}
	*n, w.data = N(v), w.data[size:]
}

// tick walks a tick, as wall time.
func (w *walk) tick(t *tick) {
	stamp := w.now.stamp(*t)
	if number(w, &stamp); w.reading {
		*t = w.now.read(stamp)
	}
}

func (w *walk) flags(bs ...*bool) {
	for _, b := range bs {
		n := uint8(0)
		if *b {
			n = 1
		}
		if count(w, &n, 1); w.reading {
			*b = n == 1
		}
	}
}

// bytes walks bytes with their length before them. Those that are read are part of data.
func (w *walk) bytes(b *[]byte) {
	n := uint64(len(*b))
	w.uints(&n)
	if !w.reading {
		w.data = append(w.data, *b...)
		return
	}
	if *b = nil; n > uint64(len(w.data)) {
		w.fail(errCutOff)
		return
	}
	*b, w.data = w.data[:n:n], w.data[n:]
}

// texts walks texts, each with its length before it.
func (w *walk) texts(ss ...*string) {
	for _, s := range ss {
		if w.reading {
			var b []byte
			w.bytes(&b)
			*s = string(b)
			continue
		}
		w.data = append(binary.AppendUvarint(w.data, uint64(len(*s))), *s...)
	}
}
