package engine

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/ferrymq/ferry/internal/container"
)

// coldIDs tells which cold messages may have an id, in 8 bytes for each and a little room. It holds no ids: what it
// names is looked at in the store, and is nearly always the one. Its tables are small, so that growing one takes no
// time. One half of the hash of an id chooses the table, the other half is in it, with the place of the message.
type coldIDs struct {
	seed   uint64
	base   uint64 // places in the log are counted from here
	tables []container.Slots[uint32]
	count  int
}

const (
	coldTables    = 1 << 12
	fewestColdIDs = 8
)

// hash is stable for a seed, so that it can be stored.
func (x *coldIDs) hash(id string) uint64 { return stableHash(x.seed, id) }

// stableHash is a fast hash of a text for tables that an outsider, who does not know the seed, cannot fill with
// collisions.
func stableHash(seed uint64, s string) uint64 {
	const k1, k2 = 0x9e3779b97f4a7c15, 0xd6e8feb86659fd93
	h := seed ^ uint64(len(s))*k1
	var word [8]byte
	for len(s) > 0 {
		clear(word[:])
		n := copy(word[:], s)
		s = s[n:]
		hi, lo := bits.Mul64(h^binary.LittleEndian.Uint64(word[:])^k1, k2^bits.RotateLeft64(seed, 29))
		h = hi ^ lo ^ bits.RotateLeft64(h, 17)
	}
	hi, lo := bits.Mul64(h^k1, k2)
	return hi ^ lo
}

// covers reports whether the place of a message can be kept.
func (x *coldIDs) covers(seq uint64) bool {
	return x.count == 0 || seq > x.base && seq-x.base <= math.MaxUint32
}

// table returns the table for a hash, and the half of the hash that is in it.
func (x *coldIDs) table(hash uint64) (*container.Slots[uint32], uint32) {
	return &x.tables[hash>>32%coldTables], max(1, uint32(hash))
}

// add notes that the message at seq has an id with this hash.
func (x *coldIDs) add(hash, seq uint64) {
	x.makeTables()
	if x.count == 0 {
		x.base = seq - 1
	}
	t, half := x.table(hash)
	x.insert(t, half, uint32(seq-x.base))
}

func (x *coldIDs) makeTables() {
	if x.tables == nil {
		x.tables = make([]container.Slots[uint32], coldTables)
	}
}

func (x *coldIDs) insert(t *container.Slots[uint32], half, at uint32) {
	if t.Len() >= t.Size()/4*3 {
		t.Resize(max(fewestColdIDs, 2*t.Size()))
	}
	t.Add(half, at)
	x.count++
}

// find returns the place of a message whose id may have this hash, or 0.
func (x *coldIDs) find(hash uint64) (seq uint64) {
	if x.count == 0 {
		return 0
	}
	t, half := x.table(hash)
	i := t.Find(half, func(uint32) bool { return true })
	if i < 0 {
		return 0
	}
	return x.base + uint64(t.At(i))
}

// remove takes back what add noted, if it did.
func (x *coldIDs) remove(hash, seq uint64) {
	if x.count == 0 {
		return
	}
	t, half := x.table(hash)
	i := t.Find(half, func(at uint32) bool { return at == uint32(seq-x.base) })
	if i < 0 {
		return
	}
	t.Clear(i)
	x.count--
	switch {
	case t.Len() == 0:
		*t = container.Slots[uint32]{}
	case t.Size() > 64 && t.Len() < t.Size()/8:
		t.Resize(t.Size() / 4)
	}
}

// clear forgets everything.
func (x *coldIDs) clear() { x.tables, x.count = nil, 0 }
