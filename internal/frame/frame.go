// Package frame is how the seam travels between a program and a gateway: calls of package driver and their answers, as
// bytes.
//
// A frame is a version, a length and a payload. A payload is the fields of one call or answer in a fixed order;
// messages and dead letters in it are envelopes, as they are stored. What is read is not trusted: a frame is bounded, a
// payload must fill it exactly, and reading takes memory in proportion to what was sent.
//
// Each type has one function that both writes and reads it (see [Walk]), so that the two cannot differ.
package frame

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/ferrymq/ferry/driver"
)

// Version is the version of frames that this package writes, and the only one that it reads.
const Version = 1

// ContentType is that of a frame over HTTP.
const ContentType = "application/vnd.ferry.frame"

// headerSize is one byte of version and four of length, big endian.
const headerSize = 5

// Value is a call or an answer.
type Value interface{ Walk(w *Walk) }

// Size is how many bytes the frame of v has.
func Size(v Value) int {
	w := &Walk{mode: measuring}
	v.Walk(w)
	return headerSize + w.size
}

// Marshal returns the frame of v.
func Marshal(v Value) ([]byte, error) {
	w := &Walk{data: make([]byte, headerSize, Size(v))}
	v.Walk(w)
	if w.err != nil {
		return nil, w.err
	}
	if err := putHeader(w.data, len(w.data)); err != nil {
		return nil, err
	}
	return w.data, nil
}

// putHeader writes the header of a frame of this size.
func putHeader(dst []byte, size int) error {
	if uint64(size)-headerSize > 1<<32-1 {
		return TooLarge(size, 1<<32-1)
	}
	dst[0] = Version
	binary.BigEndian.PutUint32(dst[1:], uint32(size-headerSize))
	return nil
}

// piece is how many bytes are sent at once, and keptPiece the largest buffer that is kept for the next: a message can
// be larger.
const (
	piece     = 128 << 10
	keptPiece = 1 << 20
)

// pieces are buffers of Write: 548 bytes instead of 139 kB for an answer with a thousand messages of 1 KiB, and 208
// instead of 2.9 kB with one (BenchmarkWrite).
var pieces = sync.Pool{New: func() any { return new([]byte) }}

// Write writes the frame of v, which has this Size, in pieces: whoever reads it begins with the first while the next is
// made.
func Write(out io.Writer, v Value, size int) error {
	buffer := pieces.Get().(*[]byte)
	w := &Walk{data: append((*buffer)[:0], make([]byte, headerSize)...), out: out}
	if err := putHeader(w.data, size); err != nil {
		return err
	}
	v.Walk(w)
	w.send(0)
	if cap(w.data) <= keptPiece {
		*buffer = w.data
		pieces.Put(buffer)
	}
	return w.err
}

// Bounds of a frame that is read.
type Bounds struct {
	// Most is the largest frame in bytes.
	Most int
	// Room is for how many bytes of one text there is memory before they have arrived, if they are announced. Defaults to
	// 64 KiB, as for anybody's; who has chosen whom it asks has more, and copies less.
	Room int
}

const (
	defaultRoom = 64 << 10
	chunk       = 32 << 10 // of memory that is read into: larger ones are slow, and a message that is kept would keep more
)

// Read reads one frame from r into v, while it arrives. What v holds afterwards may share memory with the frame, and
// with nothing else. An input that ends early is an error of r where that has one, and otherwise an ErrInvalid.
func Read(r io.Reader, b Bounds, v Value) error {
	var header [headerSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return cut(err)
	}
	if header[0] != Version {
		return driver.NewError(driver.ErrInvalid, fmt.Sprintf("the frame has version %d, this program reads version %d",
			header[0], Version),
			"use the same release of Ferry on both sides", nil)
	}
	size := int64(binary.BigEndian.Uint32(header[1:]))
	if size > int64(b.Most) {
		return TooLarge(int(size), b.Most)
	}
	return read(&Walk{mode: reading, in: r, rest: int(size), room: cmp.Or(b.Room, defaultRoom)}, v)
}

func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return damaged("it is cut off")
	}
	return err
}

// Unmarshal reads the payload of a frame into v, which may share memory with data afterwards.
func Unmarshal(data []byte, v Value) error { return read(&Walk{data: data, mode: reading}, v) }

func read(w *Walk, v Value) error {
	v.Walk(w)
	if more := w.coming(); w.err == nil && more > 0 {
		return damaged(fmt.Sprintf("%d bytes follow its end", more))
	}
	return w.err
}

// TooLarge is the error for a frame beyond a limit.
func TooLarge(size, limit int) error {
	return driver.NewError(driver.ErrTooLarge, fmt.Sprintf("a frame of %d bytes exceeds the limit of %d", size, limit),
		"send or ask for less at once", nil)
}

func damaged(why string) error {
	return driver.NewError(driver.ErrInvalid, "the frame cannot be read: "+why,
		"see whether both sides are Ferry, and of the same release", nil)
}
