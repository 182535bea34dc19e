package engine

import (
	"time"

	"github.com/ferrymq/ferry/driver"
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

// item is one message as one group sees it. It is linked into what its state needs, so that nothing is searched.
type item struct {
	e       *entry
	g       *group
	sibling *item // the same message in another group

	lanePrev, laneNext *item // in the list of a lane
	keyPrev, keyNext   *item // in its chain

	chain *chain // nil without a key, and while others of the key may pass
	claim *claim // in flight
	more  *record

	place    uint64 // its place in the order of the group
	since    tick   // ready: since when; waiting: until when; done: when it was settled, if that is known
	failures int32
	heapAt   int32  // its place in a heap: of its lane, or of those that wait
	lost     uint16 // leases that count: see losses.go
	inLane   uint8  // 1 + the number of the lane in which it is; 0: in none
	state    itemState
	cause    driver.Cause
	toTail   bool // waiting, and joins the tail when due
	home     bool // lies beside its entry
	lapsed   bool // a lease was lost
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

type itemHeap = heap[*item]

func newItemHeap() itemHeap {
	return itemHeap{moved: func(it *item, at int32) { it.heapAt = at }}
}

func (it *item) record() *record {
	if it.more == nil {
		it.more = &record{}
	}
	return it.more
}

// content is the entry that holds key, body, headers and priority as this group sees them.
func (it *item) content() *entry {
	if it.more != nil && it.more.edited != nil {
		return it.more.edited
	}
	return it.e
}

// laneList is a list of items in the order of their places.
type laneList struct{ head, tail *item }

func (l *laneList) push(it *item) {
	it.lanePrev = l.tail
	if l.tail != nil {
		l.tail.laneNext = it
	} else {
		l.head = it
	}
	l.tail = it
}

func (l *laneList) remove(it *item) {
	if it.lanePrev != nil {
		it.lanePrev.laneNext = it.laneNext
	} else {
		l.head = it.laneNext
	}
	if it.laneNext != nil {
		it.laneNext.lanePrev = it.lanePrev
	} else {
		l.tail = it.lanePrev
	}
	it.lanePrev, it.laneNext = nil, nil
}
