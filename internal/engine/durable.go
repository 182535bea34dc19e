package engine

import (
	"slices"

	"github.com/ferrymq/ferry/driver"
)

// Where a publish survives a power loss, a consumer must not act on a message that does not yet: it would have handled
// what was never published. New messages are claimed at once, so that no time is lost, but delivered when the round
// that stored them is synced. What is older never waits for them.

// unsynced is a round that stored new messages, up to a place in the log.
type unsynced struct {
	upTo  uint64
	round Round
}

// noteFresh notes that a round stores new messages.
func (t *topic) noteFresh(fresh []*entry, r Round) {
	j := t.journal
	if len(fresh) == 0 || !t.e.synced(driver.PublishOptions{}) {
		return
	}
	j.forgetSynced()
	upTo := uint64(0)
	for _, e := range fresh {
		upTo = max(upTo, e.seq)
	}
	if n := len(j.unsynced); n > 0 && j.unsynced[n-1].round == r {
		j.unsynced[n-1].upTo = max(j.unsynced[n-1].upTo, upTo)
		return
	}
	j.unsynced = append(j.unsynced, unsynced{upTo, r})
}

// forgetSynced drops the rounds that are synced.
func (j *journal) forgetSynced() {
	n := 0
	for ; n < len(j.unsynced) && j.unsynced[n].round.Synced(); n++ {
		j.safe = max(j.safe, j.unsynced[n].upTo)
	}
	j.unsynced = slices.Delete(j.unsynced, 0, n)
}

// unsafe reports whether a power loss may take a message that is to be delivered.
func (t *topic) unsafe(e *entry) bool {
	j := t.journal
	return j != nil && len(j.unsynced) > 0 && e.seq > j.safe
}

// safety returns the round that must be synced before claims are delivered, or nil.
func (t *topic) safety(claims []claim) Round {
	j := t.journal
	if j == nil || len(j.unsynced) == 0 {
		return nil
	}
	j.forgetSynced()
	newest := uint64(0)
	for i := range claims {
		newest = max(newest, claims[i].entry.seq)
	}
	if newest <= j.safe {
		return nil
	}
	for i := range j.unsynced {
		if newest <= j.unsynced[i].upTo {
			return j.unsynced[i].round
		}
	}
	return nil
}
