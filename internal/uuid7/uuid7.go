// Package uuid7 makes message ids: UUIDs of version 7, which sort by the time they were made.
//
// It exists beside google/uuid because an id is made for every message: this one costs one allocation, its string, and
// many can share one reading of the clock, which is half of the cost.
package uuid7

import (
	"math/rand/v2"
	"time"
)

// New returns a new id, made now, in its canonical text form.
func New(now time.Time) string {
	high := uint64(now.UnixMilli())<<16 | 0x7000 | rand.Uint64()&0x0fff
	low := 1<<63 | rand.Uint64()&(1<<62-1)
	var text [36]byte
	for i, at := range [8]int{0, 2, 4, 6, 9, 11, 14, 16} {
		put(&text, at, byte(high>>(56-8*i)))
	}
	for i, at := range [8]int{19, 21, 24, 26, 28, 30, 32, 34} {
		put(&text, at, byte(low>>(56-8*i)))
	}
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return string(text[:])
}

func put(text *[36]byte, at int, b byte) {
	const digits = "0123456789abcdef"
	text[at], text[at+1] = digits[b>>4], digits[b&15]
}
