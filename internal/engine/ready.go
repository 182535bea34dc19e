package engine

import (
	"cmp"
	"slices"
	"sort"
)

// readyTimes tells since when the oldest ready item of a group is ready. Items that become ready within readyGrain
// count as if they had done so together, so that it needs next to nothing for each.
type readyTimes struct {
	times []readyTime // in order
	empty int         // of times, with no items left
}

// readyTime is how many items are ready since then.
type readyTime struct {
	since tick
	items int
}

// readyGrain is one millisecond: how much too old the oldest item may seem.
const readyGrain tick = 1_000_000

// add counts an item that became ready at some time, mostly now, and returns since when it is taken to be ready.
func (r *readyTimes) add(since tick) tick {
	vs := r.times
	i := len(vs)
	if i > 0 && since < vs[i-1].since {
		i = sort.Search(len(vs), func(i int) bool { return vs[i].since > since })
	}
	if i == 0 || since >= vs[i-1].since+readyGrain {
		if i == len(vs) { // nearly always
			r.times = append(r.times, readyTime{since, 1})
		} else {
			r.times = slices.Insert(vs, i, readyTime{since, 1})
		}
		return since
	}
	if vs[i-1].items++; vs[i-1].items == 1 {
		r.empty--
	}
	return vs[i-1].since
}

// remove takes back what add returned.
func (r *readyTimes) remove(since tick) {
	at := 0
	if r.times[0].since != since {
		at, _ = slices.BinarySearchFunc(r.times, since, func(t readyTime, s tick) int { return cmp.Compare(t.since, s) })
	}
	t := &r.times[at]
	if t.items--; t.items > 0 {
		return
	}
	r.empty++
	for len(r.times) > 0 && r.times[0].items == 0 {
		r.times = popFirst(r.times)
		r.empty--
	}
	if n := len(r.times); n > 64 && r.empty > n/2 { // one that stays ready must not keep the others
		r.times = slices.DeleteFunc(r.times, func(t readyTime) bool { return t.items == 0 })
		r.empty = 0
	}
}

// oldest returns since when something is ready, or never.
func (r *readyTimes) oldest() tick {
	if len(r.times) == 0 {
		return never
	}
	return r.times[0].since
}
