package consumer

import (
	"iter"

	"github.com/ferrymq/ferry/driver"
)

// The outcomes of a strict key stand in the order of its messages. Most take effect in memory at once, but some have to
// be stored: until that is known, what is behind them waits, and if it failed it is refused until the one ahead is
// settled, or lost with all behind it.

func errNotInTurn() error {
	return driver.NewError(driver.ErrNotApplied, "the outcome of an earlier message of the key is not stored",
		"settle that one first, then try again", nil)
}

// ahead are the claims of a strict key before one.
func (q *queue) ahead(c *claim) iter.Seq[*claim] {
	return func(yield func(*claim) bool) {
		if !q.blocks(c.it) {
			return
		}
		for x := range q.scheduled.Members(c.it.Msg.Key) { // none: its partition goes
			if x == c.it || x.claimed != nil && !yield(x.claimed) {
				return
			}
		}
	}
}

// failedAhead reports whether the outcome of an earlier message of its key could not be stored.
func (q *queue) failedAhead(c *claim) bool {
	for x := range q.ahead(c) {
		if x.failed {
			return true
		}
	}
	return false
}

// turn says whether an outcome has to wait for that of an earlier message of its key which is on its way, and refuses
// it where that one failed. To return a message is always right, but not before one that waits itself: that may return
// it. Those of one step go together where they are stored in one transaction, or in order: ends in the retry log of the
// partition.
func (m *member) turn(c *claim, o *driver.Settlement) (wait bool, err error) {
	for x := range m.ahead(c) {
		w := x.settling
		switch {
		case x.deferred == m.passes:
			return true, nil
		case o.Outcome == driver.Release:
		case w == nil && x.failed:
			return false, errNotInTurn()
		case w == nil:
		case w.pass == m.passes && (w.then != nil && isEnd(w.o) && c.it.logKey != "" && isEnd(o) ||
			m.d.cluster.Settings.Transactions && len(w.o.Emit) > 0 && len(o.Emit) > 0):
		default:
			return true, nil
		}
	}
	return (o.Outcome == driver.Retry || o.Outcome == driver.Release) && m.deferredBehind(c), nil
}

// deferredBehind reports whether an outcome of a later message of the strict key waits that stands earlier in the same
// call: a return would take the message from its holder first.
func (m *member) deferredBehind(c *claim) bool {
	if !m.blocks(c.it) {
		return false
	}
	for x := range c.it.Followers() {
		if x.claimed != nil && x.claimed.deferred == m.passes {
			return true
		}
	}
	return false
}
