package engine

import (
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/scheduler"
)

type itemState uint8

const (
	gone     itemState = iota // not seen by the group, or settled and not kept
	ready                     // due; may wait for its key
	inflight                  // leased
	waiting                   // for a retry, or parked
	dead                      // a dead letter
	done                      // settled and kept
)

// item is one message as one group sees it. It is compact for the same reason as an entry.
type item struct {
	scheduler.Node[item]

	e       *entry
	g       *group
	sibling *item // the same message in another group

	claim *claim // in flight
	more  *record

	at       tick // the time of its state: it is ready since then, waits until then, was done then (0: not known)
	failures int32
	lost     uint16 // leases that count: see losses.go
	state    itemState
	cause    driver.Cause
}

// Flags of items.
const (
	besideEntry uint8 = 1 << iota // it lies there: see prompt
	leaseLost                     // once, counted or not
)

func (it *item) is(flag uint8) bool { return it.Flags&flag != 0 }

// set raises or lowers a flag.
func (it *item) set(flag uint8, up bool) {
	if it.Flags &^= flag; up {
		it.Flags |= flag
	}
}

// record is what few items have.
type record struct {
	history []driver.Failure
	edited  *entry // content that an operator replaced for this group
	dead    *driver.DeadLetter
	buried  uint64   // its place among the dead letters
	rounds  uint16   // how often it was replayed as a dead letter
	losses  []*claim // that were begun, and counted; the latest last
	ending  ending
}

// ending is how a message that is done was settled.
type ending struct {
	known bool // since tells when
	took  time.Duration
	by    string
}

func (it *item) record() *record {
	if it.more == nil {
		it.more = &record{}
	}
	return it.more
}

// rounds is how often it was replayed as a dead letter.
func (it *item) rounds() uint16 {
	if it.more == nil {
		return 0
	}
	return it.more.rounds
}

// content is the entry that holds key, body, headers and priority as this group sees them.
func (it *item) content() *entry {
	if it.more != nil && it.more.edited != nil {
		return it.more.edited
	}
	return it.e
}

// startOver forgets what attempts have cost: it is delivered as if for the first time.
func (it *item) startOver() {
	it.failures, it.lost = 0, 0
	it.set(leaseLost, false)
}
