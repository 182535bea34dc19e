package container

import "hash/maphash"

// Table finds what has a name by it: messages by their ids, chains by their keys. It holds no texts, because its
// members have them, and it grows and shrinks in small steps: nobody waits while a million members move.
//
// A Go map has the texts' headers too and never shrinks: the engine's BenchmarkBacklog shows what that costs for each
// message.
type Table[T Named] struct {
	hash func(name string) uint32 // never zero
	now  Slots[T]
	old  Slots[T] // what is not in now yet
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

const (
	fewestSlots = 16
	moveAtOnce  = 32 // slots, for each change: more than enough to be done before the next time
)

// Len is how many members there are.
func (x *Table[T]) Len() int { return x.now.used + x.old.used }

// Get returns the member with a name.
func (x *Table[T]) Get(name string) (v T, ok bool) {
	h, named := x.hash(name), func(v T) bool { return v.Name() == name }
	if i := x.now.Find(h, named); i >= 0 {
		return x.now.members[i], true
	}
	if i := x.old.Find(h, named); i >= 0 {
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
	x.now.Add(x.hash(v.Name()), v)
}

// Remove takes out a member that is there.
func (x *Table[T]) Remove(v T) {
	x.move(moveAtOnce)
	h, same := x.hash(v.Name()), func(m T) bool { return m == v }
	if i := x.now.Find(h, same); i >= 0 {
		x.now.Clear(i)
	} else if i := x.old.Find(h, same); i >= 0 {
		x.old.Clear(i)
	}
	if n := len(x.now.hashes); n > 4096 && x.Len() < n/8 && x.old.used == 0 {
		x.resize(n / 4)
	}
}

// resize begins to move everything into a new table.
func (x *Table[T]) resize(n int) {
	x.move(x.left) // hardly ever anything
	x.old, x.at, x.left = x.now, 0, len(x.now.hashes)
	x.now = NewSlots[T](n)
	for x.left > 0 && x.old.hashes[x.at] != 0 { // begin where no run of used slots is cut in two
		x.at++
	}
}

// move looks at some slots of the old table, and on to the end of a run, so that what stays can be found.
func (x *Table[T]) move(n int) {
	s := &x.old
	for ; x.left > 0 && (n > 0 || s.hashes[x.at] != 0); n-- {
		if h := s.hashes[x.at]; h != 0 {
			x.now.Add(h, s.members[x.at])
			var none T
			s.hashes[x.at], s.members[x.at] = 0, none
			s.used--
		}
		x.at = (x.at + 1) & (len(s.hashes) - 1)
		x.left--
	}
	if x.left == 0 {
		x.old = Slots[T]{}
	}
}
