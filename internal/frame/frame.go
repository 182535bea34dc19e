// Package frame is how the seam travels between a program and a gateway: calls of package driver and their answers, as bytes.
//
// A frame is a version, a length and a payload. A payload is the fields of one call or answer in a fixed order; messages and
// dead letters in it are envelopes, as they are stored. What is read is not trusted: a frame is bounded, a payload must fill
// it exactly, and reading takes memory in proportion to what was sent.
//
// Each type has one function that both writes and reads it (see [Walk]), so that the two cannot differ.
package frame

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

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

// Marshal returns the frame of v.
func Marshal(v Value) ([]byte, error) { return Append(make([]byte, 0, 512), v) }

// Append appends the frame of v to dst, and returns dst as it was if there is an error.
func Append(dst []byte, v Value) ([]byte, error) {
	begin := len(dst)
	w := &Walk{data: append(dst, make([]byte, headerSize)...)}
	v.Walk(w)
	if w.err != nil {
		return dst, w.err
	}
	payload := len(w.data) - begin - headerSize
	if uint64(payload) > 1<<32-1 {
		return dst, TooLarge(payload, 1<<32-1)
	}
	w.data[begin] = Version
	binary.BigEndian.PutUint32(w.data[begin+1:], uint32(payload))
	return w.data, nil
}

// Bounds of a frame that is read.
type Bounds struct {
	// Most is the largest frame in bytes.
	Most int
	// Room is for how many bytes there is memory before they have arrived, if they are announced. Defaults to 64 KiB, as for anybody's;
	// who has chosen whom it asks has more, and copies less.
	Room int
}

const defaultRoom = 64 << 10

// Read reads one frame from r into v. What v holds afterwards may share memory with the frame, and with
// nothing else. An input that ends early is an error of r where that has one, and otherwise an ErrInvalid.
func Read(r io.Reader, b Bounds, v Value) error {
	var header [headerSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return cut(err)
	}
	if header[0] != Version {
		return driver.NewError(driver.ErrInvalid, fmt.Sprintf("the frame has version %d, this program reads version %d", header[0], Version),
			"use the same release of Ferry on both sides", nil)
	}
	size := int64(binary.BigEndian.Uint32(header[1:]))
	if size > int64(b.Most) {
		return TooLarge(int(size), b.Most)
	}
	data, err := readAll(r, size, int64(cmp.Or(b.Room, defaultRoom)))
	if err != nil {
		return err
	}
	return Unmarshal(data, v)
}

// readAll reads size bytes. Beyond room the buffer grows with what arrives, not with what is announced.
func readAll(r io.Reader, size, room int64) ([]byte, error) {
	const growth = 4
	data := make([]byte, 0, min(size, room))
	for int64(len(data)) < size {
		if len(data) == cap(data) {
			grown := make([]byte, len(data), min(size, growth*int64(cap(data))))
			copy(grown, data)
			data = grown
		}
		n, err := r.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if err != nil && int64(len(data)) < size {
			return nil, cut(err)
		}
	}
	return data, nil
}

func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return damaged("it is cut off")
	}
	return err
}

// Unmarshal reads the payload of a frame into v, which may share memory with data afterwards.
func Unmarshal(data []byte, v Value) error {
	w := &Walk{data: data, reading: true}
	v.Walk(w)
	if w.err == nil && len(w.data) > 0 {
		return damaged(fmt.Sprintf("%d bytes follow its end", len(w.data)))
	}
	return w.err
}

// TooLarge is the error for a frame beyond a limit.
func TooLarge(size, limit int) error {
	return driver.NewError(driver.ErrTooLarge, fmt.Sprintf("a frame of %d bytes exceeds the limit of %d", size, limit),
		"send or ask for less at once", nil)
}

func damaged(why string) error {
	return driver.NewError(driver.ErrInvalid, "the frame cannot be read: "+why, "see whether both sides are Ferry, and of the same release", nil)
}
