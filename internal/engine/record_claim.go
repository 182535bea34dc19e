package engine

import "math"

// receipt is the stored record of what one Receive claimed. It is removed with the last of its claims; what is found
// when the store is opened was in flight when the process ended.
type receipt struct {
	number uint64 // of its first claim; the others count down
	left   int    // claims that are not over
}

// claimRecord is what a receipt says: the messages in the order of the numbers of their claims, the highest first.
type claimRecord struct {
	group uint32
	seqs  []uint64
}

func (c *claimRecord) walk(w *walk) {
	count(w, &c.group, math.MaxUint32)
	for i := range c.seqs {
		w.uints(&c.seqs[i])
	}
	for w.more() {
		c.seqs = append(c.seqs, 0)
		w.uints(&c.seqs[len(c.seqs)-1])
	}
}

// known is a stored dedup id, or an id of a producer's own.
type known struct {
	message string // the id of the first message
	seq     uint64
	until   int64 // stamp
}

func (k *known) walk(w *walk) {
	w.texts(&k.message)
	w.uints(&k.seq)
	number(w, &k.until)
}
