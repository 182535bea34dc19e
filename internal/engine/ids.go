package engine

import "hash/maphash"

// idIndex finds messages by their ids. It knows ids by their hashes: an entry has its id itself, and a table of numbers is
// half as large as one of texts. Of ids with the same hash, which hardly ever happens, all but the first are in clashes.
type idIndex struct {
	hash    func(id string) uint64
	byHash  index[uint64, *entry]
	clashes index[string, *entry]
	last    lookup
}

// lookup is the answer to the last question: who stores a message has just asked whether it is there.
type lookup struct {
	id    string
	hash  uint64
	taken bool // the hash, by this id or another
}

func (e *Engine) hashID(id string) uint64 { return maphash.String(e.seed, id) }

func (x *idIndex) get(id string) (*entry, bool) {
	h := x.hash(id)
	e, ok := x.byHash.get(h)
	x.last = lookup{id, h, ok}
	if ok && e.id == id {
		return e, true
	}
	if x.clashes.len() == 0 {
		return nil, false
	}
	return x.clashes.get(id)
}

// put adds an entry whose id is not there, by the answer of get.
func (x *idIndex) put(e *entry) {
	if x.last.id != e.id {
		x.get(e.id)
	}
	if x.last.taken {
		x.clashes.put(e.id, e)
	} else {
		x.byHash.put(x.last.hash, e)
	}
	x.last = lookup{}
}

// remove takes out an entry that was put in.
func (x *idIndex) remove(e *entry) {
	h := x.hash(e.id)
	x.last = lookup{}
	if x.clashes.len() > 0 {
		if at, _ := x.byHash.get(h); at != e {
			x.clashes.remove(e.id)
			return
		}
	}
	x.byHash.remove(h)
}

func (x *idIndex) len() int { return x.byHash.len() + x.clashes.len() }
