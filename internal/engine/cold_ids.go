package engine

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// coldIDs tells which cold messages may have an id, in 8 bytes for each and a little room. It holds no ids: what it
// names is looked at in the store, and is nearly always the one. Its tables are small, so that growing one takes no
// time.
type coldIDs struct {
	seed   uint64
	base   uint64 // places in the log are counted from here
	tables [][]uint64
	used   []int32
	count  int
}

// A slot is the place of a message, counted from base, and half of the hash of its id; the other half chooses the
// table.
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

// add notes that the message at seq has an id with this hash.
func (x *coldIDs) add(hash, seq uint64) {
	if x.tables == nil {
		x.tables, x.used = make([][]uint64, coldTables), make([]int32, coldTables)
	}
	if x.count == 0 {
		x.base = seq - 1
	}
	n := hash >> 32 % coldTables
	x.insert(n, (seq-x.base)<<32|hash&math.MaxUint32)
}

// insert puts a slot into table n.
func (x *coldIDs) insert(n, slot uint64) {
	if t := x.tables[n]; int(x.used[n]) >= len(t)/4*3 {
		x.resize(n, max(fewestColdIDs, 2*len(t)))
	}
	put(x.tables[n], slot)
	x.used[n]++
	x.count++
}

func put(t []uint64, slot uint64) {
	mask := uint64(len(t) - 1)
	i := slot & mask
	for t[i] != 0 {
		i = (i + 1) & mask
	}
	t[i] = slot
}

func (x *coldIDs) resize(n uint64, size int) {
	old := x.tables[n]
	x.tables[n] = make([]uint64, size)
	for _, slot := range old {
		if slot != 0 {
			put(x.tables[n], slot)
		}
	}
}

// find calls use with the place of each message whose id may have this hash.
func (x *coldIDs) find(hash uint64, use func(seq uint64)) {
	if x.count == 0 {
		return
	}
	t := x.tables[hash>>32%coldTables]
	if len(t) == 0 {
		return
	}
	mask := uint64(len(t) - 1)
	for i := hash & math.MaxUint32 & mask; t[i] != 0; i = (i + 1) & mask {
		if t[i]&math.MaxUint32 == hash&math.MaxUint32 {
			use(x.base + t[i]>>32)
		}
	}
}

// remove takes back what add noted, if it did.
func (x *coldIDs) remove(hash, seq uint64) {
	if x.count == 0 {
		return
	}
	n := hash >> 32 % coldTables
	t := x.tables[n]
	if len(t) == 0 {
		return
	}
	slot, mask := (seq-x.base)<<32|hash&math.MaxUint32, uint64(len(t)-1)
	i := slot & mask
	for ; t[i] != slot; i = (i + 1) & mask {
		if t[i] == 0 {
			return
		}
	}
	for j := (i + 1) & mask; t[j] != 0; j = (j + 1) & mask { // what lies behind moves up
		if home := t[j] & mask; (j-home)&mask >= (j-i)&mask {
			t[i], i = t[j], j
		}
	}
	t[i] = 0
	x.count--
	x.used[n]--
	switch used := int(x.used[n]); {
	case used == 0:
		x.tables[n] = nil
	case len(t) > 64 && used < len(t)/8:
		x.resize(n, len(t)/4)
	}
}

// clear forgets everything.
func (x *coldIDs) clear() { x.tables, x.used, x.count = nil, nil, 0 }
