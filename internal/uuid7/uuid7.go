// Package uuid7 makes message ids: UUIDs of version 7, which sort by the time they were made.
//
// It exists beside google/uuid because an id is made for every message: this one costs one allocation, its string, and
// many can share one reading of the clock, which is half of the cost.
package uuid7

import (
	"encoding/binary"
	"math/rand/v2"
	"time"
)

// New returns a new id, made now, in its canonical text form.
func New(now time.Time) string {
	high := uint64(now.UnixMilli())<<16 | 0x7000 | rand.Uint64()&0x0fff
	low := 1<<63 | rand.Uint64()&(1<<62-1)
	var text [36]byte
	hex(text[0:8], uint32(high>>32))
	hex(text[10:18], uint32(high)) // its halves are moved apart below
	hex(text[19:27], uint32(low>>32))
	hex(text[28:36], uint32(low))
	copy(text[9:13], text[10:14])
	copy(text[24:28], text[23:27])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return string(text[:])
}

// hex writes the eight digits of n, all at once: each is a byte of one number.
func hex(text []byte, n uint32) {
	const each = 0x0101010101010101
	x := uint64(n)
	x = (x | x<<16) & 0x0000ffff0000ffff
	x = (x | x<<8) & 0x00ff00ff00ff00ff
	x = (x | x<<4) & 0x0f0f0f0f0f0f0f0f
	letters := (x + 6*each) >> 4 & each
	binary.BigEndian.PutUint64(text, x+'0'*each+letters*('a'-'0'-10))
}
