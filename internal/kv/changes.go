package kv

import "sort"

// remembered is how many writes of a bucket are told to those who ask for changes.
const remembered = 1024

// change is one write.
type change struct {
	revision uint64
	name     string
}

// changes are the newest writes of a bucket, oldest first.
type changes struct {
	list      []change
	forgotten uint64 // up to this revision some are not in the list
}

func (c *changes) add(name string, revision uint64) {
	c.list = append(c.list, change{revision, name})
	if len(c.list) < 2*remembered {
		return
	}
	c.forgotten = c.list[remembered-1].revision
	c.list = append(c.list[:0:0], c.list[remembered:]...)
}

// after returns the last write of each name behind a revision. Not ok: not all of them are known.
func (c *changes) after(revision uint64) (last []change, ok bool) {
	if revision < c.forgotten {
		return nil, false
	}
	at := sort.Search(len(c.list), func(i int) bool { return c.list[i].revision > revision })
	newest := map[string]uint64{}
	for _, x := range c.list[at:] {
		newest[x.name] = x.revision
	}
	for _, x := range c.list[at:] {
		if newest[x.name] == x.revision {
			last = append(last, x)
		}
	}
	return last, true
}
