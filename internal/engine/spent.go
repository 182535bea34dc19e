package engine

import (
	"math"
	"sync"
)

// Without a store the memory of messages that are gone is used again, so that a steady flow leaves little to collect.
//
// That is safe only if nobody can still see a message. What runs under the lock of its topic is over when the topic is
// unlocked. Beside that only Receive looks at messages, to copy those it has claimed: an entry counts its claims, and
// each that its holder settles is done with, because the holder has the copy. A claim that ends in any other way is
// never subtracted, and the memory of its message is left to the collector.

// spentPrompts are entries to use again, each with the item beside it. In BenchmarkPublishReceiveAck/batch of the
// memory driver a message costs 678 bytes in no allocation of its own with them, and 1,086 bytes in two without.
type spentPrompts struct{ pool sync.Pool }

// maxSpentBody is the largest body whose room is used again.
const maxSpentBody = 4 << 10

// take returns an empty prompt entry.
func (s *spentPrompts) take() *entry {
	it, _ := s.pool.Get().(*item)
	if it == nil {
		return newPrompt()
	}
	e := it.e
	*e = entry{body: e.body[:0], items: it}
	*it = item{}
	it.set(besideEntry, true)
	return e
}

// lend notes that a claim is about to be copied.
func (e *entry) lend() {
	if e.unread < math.MaxUint8 {
		e.unread++
	}
}

// giveBack notes that the holder of a claim, and so of the copy, has settled it. Beyond what can be counted it is never
// done.
func (e *entry) giveBack() {
	if e.unread < math.MaxUint8 {
		e.unread--
	}
}

// spend notes that an item is gone.
func (t *topic) spend(it *item) {
	if it.is(besideEntry) && t.journal == nil {
		it.set(besideEntry, false) // once
		t.spent = append(t.spent, it)
	}
}

// recycle ends a step: what is gone with its message, and seen by nobody, is used again.
func (t *topic) recycle() {
	for i, it := range t.spent {
		if e := it.e; e.state == atRest && e.unread == 0 && cap(e.body) <= maxSpentBody {
			t.e.spent.pool.Put(it)
		}
		t.spent[i] = nil
	}
	if t.spent = t.spent[:0]; cap(t.spent) > 4096 {
		t.spent = nil
	}
}
