package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// recordVersion begins every record but messages, whose envelope has a version of its own.
const recordVersion = 1

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal ends a record with a checksum of everything from start on.
func seal(dst []byte, start int) []byte {
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

func appendBytes[T string | []byte](dst []byte, v T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(v))), v...)
}

func appendBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, 1)
	}
	return append(dst, 0)
}

var errCutOff = errors.New("the record is cut off")

// reader reads what the append functions wrote. After the first error everything is zero.
type reader struct {
	rest []byte
	err  error
}

// unseal checks version and checksum of a record, and returns a reader of what is between them.
func unseal(record []byte) *reader {
	r, _ := unsealUpTo(record, recordVersion)
	return r
}

// unsealUpTo is unseal for a record that has versions up to newest, and returns which it is.
func unsealUpTo(record []byte, newest byte) (r *reader, version byte) {
	end := len(record) - 4
	if end < 1 {
		return &reader{err: errCutOff}, 0
	}
	if stored, computed := binary.LittleEndian.Uint32(record[end:]),
		crc32.Checksum(record[:end], castagnoli); stored != computed {
		return &reader{err: fmt.Errorf("the checksum is %08x, but the content gives %08x", stored, computed)}, 0
	}
	version = record[0]
	if version < recordVersion || version > newest {
		return &reader{err: fmt.Errorf("the record has version %d, this program reads up to version %d", version, newest)},
			version
	}
	return &reader{rest: record[1:end]}, version
}

func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.rest)
	return number(r, v, n)
}

func (r *reader) int() int64 {
	v, n := binary.Varint(r.rest)
	return number(r, v, n)
}

func number[T int64 | uint64](r *reader, v T, n int) T {
	if r.err != nil {
		return 0
	}
	if n <= 0 {
		r.err, r.rest = errCutOff, nil
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// upTo reads a number that must not exceed most.
func (r *reader) upTo(most uint64) uint64 {
	v := r.uint()
	if v > most && r.err == nil {
		r.err = fmt.Errorf("the number %d is out of range", v)
		return 0
	}
	return v
}

func (r *reader) uint16() uint16 { return uint16(r.upTo(math.MaxUint16)) }
func (r *reader) uint32() uint32 { return uint32(r.upTo(math.MaxUint32)) }
func (r *reader) bool() bool     { return r.upTo(1) == 1 }

// bytes returns a part of the record.
func (r *reader) bytes() []byte {
	n := r.uint()
	if r.err != nil || n > uint64(len(r.rest)) {
		if r.err == nil {
			r.err = errCutOff
		}
		return nil
	}
	v := r.rest[:n:n]
	r.rest = r.rest[n:]
	return v
}

func (r *reader) text() string { return string(r.bytes()) }

// end says what was wrong with the record.
func (r *reader) end() error {
	if r.err == nil && len(r.rest) > 0 {
		return fmt.Errorf("%d bytes are left over", len(r.rest))
	}
	return r.err
}
