// Package uuid7 makes message ids: UUIDs of version 7, which sort by the time they were made.
//
// It exists beside google/uuid because an id is made for every message: this one costs one allocation, its string.
package uuid7

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"time"
)

// New returns a new id in its canonical text form.
func New() string {
	var u [16]byte
	binary.BigEndian.PutUint64(u[:8], uint64(time.Now().UnixMilli())<<16|rand.Uint64()&0x0fff|0x7000)
	binary.BigEndian.PutUint64(u[8:], rand.Uint64()&(1<<62-1)|1<<63)

	var text [36]byte
	hex.Encode(text[0:8], u[0:4])
	hex.Encode(text[9:13], u[4:6])
	hex.Encode(text[14:18], u[6:8])
	hex.Encode(text[19:23], u[8:10])
	hex.Encode(text[24:36], u[10:16])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return string(text[:])
}
