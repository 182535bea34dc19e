// Package load makes the bodies that are published, and keeps the ledger of what came back.
package load

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"time"
)

const (
	headerSize = 16
	// arenaSize is small enough to stay in a core's cache, so that making and checking bodies costs little.
	arenaSize = 64 << 10
)

// Bodies makes bodies of random bytes, each with a sequence number and a time stamp of its own. They do not compress.
type Bodies struct {
	size  int
	arena []byte
	epoch time.Time
}

// NewBodies returns a maker of bodies of size bytes, at least 16.
func NewBodies(size int, seed uint64) *Bodies {
	b := &Bodies{size: max(size, headerSize), epoch: time.Now()}
	b.arena = make([]byte, arenaSize+b.size)
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	_, _ = rand.NewChaCha8(key).Read(b.arena) // never fails
	return b
}

// Size is the length of every body.
func (b *Bodies) Size() int { return b.size }

// Fill writes body number seq with a time stamp into buf, which has the right size.
func (b *Bodies) Fill(buf []byte, seq uint64, stamp time.Time) {
	binary.LittleEndian.PutUint64(buf, seq)
	var at int64
	if !stamp.IsZero() {
		at = int64(stamp.Sub(b.epoch))
	}
	binary.LittleEndian.PutUint64(buf[8:], uint64(at))
	copy(buf[headerSize:], b.filling(seq))
}

// Look returns the number and the stamp that a body says it has.
func (b *Bodies) Look(body []byte) (seq uint64, stamp time.Time) {
	if len(body) < headerSize {
		return 0, time.Time{}
	}
	return binary.LittleEndian.Uint64(body), b.epoch.Add(time.Duration(binary.LittleEndian.Uint64(body[8:])))
}

// Check returns the number of a body, and whether every byte of it is as Fill wrote it.
func (b *Bodies) Check(body []byte) (seq uint64, ok bool) {
	if len(body) != b.size {
		return 0, false
	}
	seq = binary.LittleEndian.Uint64(body)
	return seq, bytes.Equal(body[headerSize:], b.filling(seq))
}

func (b *Bodies) filling(seq uint64) []byte {
	at := int(seq * 0x9e3779b97f4a7c15 >> 48) // 16 bits: as many places as the arena has
	return b.arena[at : at+b.size-headerSize]
}
