package consumer

import "github.com/ferrymq/ferry/driver"

// The outcomes of a strict key stand in the order of its messages. Most take effect in memory at once, but some have to
// be stored: until that is known, what is behind them waits, and if it failed it is refused until the one ahead is
// settled, or lost with all behind it.

func errNotInTurn() error {
	return driver.NewError(driver.ErrNotApplied, "the outcome of an earlier message of the key is not stored",
		"settle that one first, then try again", nil)
}

// ahead calls use with the claims of a strict key before one, until it returns false.
func (q *queue) ahead(c *claim, use func(*claim) bool) {
	if !q.blocks(c.it) {
		return
	}
	for x := range q.scheduled.Members(c.it.Msg.Key) { // none: its partition goes
		if x == c.it || x.claimed != nil && !use(x.claimed) {
			return
		}
	}
}

// failedAhead reports whether the outcome of an earlier message of its key could not be stored.
func (q *queue) failedAhead(c *claim) (failed bool) {
	q.ahead(c, func(x *claim) bool {
		failed = x.failed
		return !failed
	})
	return failed
}

// turn says whether an outcome has to wait for that of an earlier message of its key which is on its way, and refuses
// it where that one failed. To return a message is always right, but not before one that waits itself: that may return
// it. Those of one step go together where they are stored in one transaction, or in order: ends in the retry log of the
// partition.
func (m *member) turn(c *claim, o *driver.Settlement) (wait bool, err error) {
	m.ahead(c, func(x *claim) bool {
		w := x.settling
		switch {
		case x.deferred == m.passes:
			wait = true
		case o.Outcome == driver.Release:
		case w == nil && x.failed:
			err = errNotInTurn()
		case w == nil:
		case w.pass == m.passes && (w.isEnd() && isEnd(c, o) || m.d.cluster.Settings.Transactions && len(w.o.Emit) > 0 &&
			len(o.Emit) > 0):
		default:
			wait = true
		}
		return err == nil && !wait
	})
	return wait, err
}

// isEnd reports whether an outcome needs nothing but an end in the retry log.
func isEnd(c *claim, o *driver.Settlement) bool {
	return (o.Outcome == driver.Ack || o.Outcome == driver.Drop) && len(o.Emit) == 0 && c.it.logKey != ""
}

func (w *settling) isEnd() bool { return w.then != nil && w.first == nil && len(w.o.Emit) == 0 }
