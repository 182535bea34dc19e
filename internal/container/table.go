package container

import "hash/maphash"

// Table finds what has a name by it: messages by their ids, chains by their keys. It is a hash table with linear
// probing that holds no texts, because its members have them, and that grows and shrinks in small steps: nobody waits
// while a million members move.
//
// A Go map has the texts' headers too and never shrinks: the engine's BenchmarkBacklog shows what that costs for each
// message.
type Table[T Named] struct {
	hash func(name string) uint32 // never zero
	now  slots[T]
	old  slots[T] // what is not in now yet
	at   int      // where moving goes on in old; nothing is left before it
	left int      // slots of old to look at
}

// Named is what has a name, which does not change while it is in a table.
type Named interface {
	comparable
	Name() string
}

// NewTable returns an empty table.
func NewTable[T Named]() Table[T] {
	seed := maphash.MakeSeed()
	return Table[T]{hash: func(name string) uint32 { return max(1, uint32(maphash.String(seed, name))) }}
}

// slots are a power of two, or none. A hash of zero means that a slot is empty.
type slots[T Named] struct {
	hashes  []uint32
	members []T
	used    int
}

const (
	fewestSlots = 16
	moveAtOnce  = 32 // slots, for each change: more than enough to be done before the next time
)

// Len is how many members there are.
func (x *Table[T]) Len() int { return x.now.used + x.old.used }

// Get returns the member with a name.
func (x *Table[T]) Get(name string) (v T, ok bool) {
	h := x.hash(name)
	if i := x.now.find(h, name); i >= 0 {
		return x.now.members[i], true
	}
	if i := x.old.find(h, name); i >= 0 {
		return x.old.members[i], true
	}
	return v, false
}

// Put adds a member whose name is not there.
func (x *Table[T]) Put(v T) {
	x.move(moveAtOnce)
	if n := len(x.now.hashes); x.Len() >= n/4*3 {
		x.resize(max(fewestSlots, 2*n))
	}
	x.now.add(x.hash(v.Name()), v)
}

// Remove takes out a member that is there.
func (x *Table[T]) Remove(v T) {
	x.move(moveAtOnce)
	h := x.hash(v.Name())
	if i := x.now.findMember(h, v); i >= 0 {
		x.now.clear(i)
	} else if i := x.old.findMember(h, v); i >= 0 {
		x.old.clear(i)
	}
	if n := len(x.now.hashes); n > 4096 && x.Len() < n/8 && x.old.used == 0 {
		x.resize(n / 4)
	}
}

// resize begins to move everything into a new table.
func (x *Table[T]) resize(n int) {
	x.move(x.left) // hardly ever anything
	x.old, x.at, x.left = x.now, 0, len(x.now.hashes)
	x.now = slots[T]{hashes: make([]uint32, n), members: make([]T, n)}
	for x.left > 0 && x.old.hashes[x.at] != 0 { // begin where no run of used slots is cut in two
		x.at++
	}
}

// move looks at some slots of the old table, and on to the end of a run, so that what stays can be found.
func (x *Table[T]) move(n int) {
	s := &x.old
	for ; x.left > 0 && (n > 0 || s.hashes[x.at] != 0); n-- {
		if h := s.hashes[x.at]; h != 0 {
			x.now.add(h, s.members[x.at])
			var none T
			s.hashes[x.at], s.members[x.at] = 0, none
			s.used--
		}
		x.at = (x.at + 1) & (len(s.hashes) - 1)
		x.left--
	}
	if x.left == 0 {
		x.old = slots[T]{}
	}
}

// find returns the slot of the member with a name, or -1.
func (s *slots[T]) find(h uint32, name string) int {
	if s.used == 0 {
		return -1
	}
	mask := len(s.hashes) - 1
	for i := int(h) & mask; s.hashes[i] != 0; i = (i + 1) & mask {
		if s.hashes[i] == h && s.members[i].Name() == name {
			return i
		}
	}
	return -1
}

// findMember returns the slot of a member, or -1. It need not look at any other.
func (s *slots[T]) findMember(h uint32, v T) int {
	if s.used == 0 {
		return -1
	}
	mask := len(s.hashes) - 1
	for i := int(h) & mask; s.hashes[i] != 0; i = (i + 1) & mask {
		if s.members[i] == v {
			return i
		}
	}
	return -1
}

func (s *slots[T]) add(h uint32, v T) {
	mask := len(s.hashes) - 1
	i := int(h) & mask
	for s.hashes[i] != 0 {
		i = (i + 1) & mask
	}
	s.hashes[i], s.members[i] = h, v
	s.used++
}

// clear empties a slot, and moves up what was put behind it because it was taken.
func (s *slots[T]) clear(i int) {
	mask := len(s.hashes) - 1
	for j := (i + 1) & mask; s.hashes[j] != 0; j = (j + 1) & mask {
		if home := int(s.hashes[j]) & mask; (j-home)&mask >= (j-i)&mask {
			s.hashes[i], s.members[i] = s.hashes[j], s.members[j]
			i = j
		}
	}
	var none T
	s.hashes[i], s.members[i] = 0, none
	s.used--
}
