package consumer

import (
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/scheduler"
)

// itemState is where an item is in its queue.
type itemState uint8

const (
	gone itemState = iota
	ready
	inflight
	waiting
	itemStates
)

// Item is a message that a group has not settled, in the process that owns its partition.
type Item struct {
	scheduler.Node[Item]

	p         *partition
	offset    int64  // in the main topic; -1 when it has none
	order     int64  // before which offset of the main topic it comes
	among     int64  // its place among those of the same order
	logKey    string // its key in the retry log; empty when it is only in the main topic
	logOffset int64  // where its newest record is in the retry log
	Msg       *driver.Message
	Ref       driver.Ref

	attempts int // failed
	lost     int // leases that count; see lease.go
	rounds   int
	history  []driver.Failure
	past     *losses
	cause    driver.Cause
	once     bool // a lease was lost, counted or not
	spared   bool // its TTL was lifted

	storedCause driver.Cause // what its record in the retry log says

	state   itemState
	since   time.Time
	ends    time.Time // see expires
	due     time.Time // while waiting
	loose   bool      // waits without blocking its key
	counted bool      // in the window
	logged  bool      // its body counts as one of the retry log
	spilled bool      // its body is only in the retry log
	careful bool      // an earlier owner may have delivered it, and crashed
	unsaved bool      // a lost lease is not stored yet
	// tailUnsaved says that its place is not stored yet.
	tailUnsaved bool
	saving      bool   // it is on its way to the retry log
	endNoted    bool   // its end is not a tombstone yet; see ends.go
	delivered   bool   // it is in the list of its partition; see partition.deliver
	changes     uint32 // of its losses: what is stored must be as new
	size        int    // of its body
	claimed     *claim
	buffer      *pollBuffer // its body is part of; nil: it is its own
}

// expires is when its TTL ends, by the clock of this machine; zero for never.
func (it *Item) expires() time.Time {
	if it.Msg.TTL <= 0 || it.spared {
		return time.Time{}
	}
	if it.ends.IsZero() {
		it.ends = it.p.m.d.cluster.EndsAt(it.Msg.PublishedAt.Add(it.Msg.TTL))
	}
	return it.ends
}

func (it *Item) expired(now time.Time) bool {
	at := it.expires()
	return !at.IsZero() && !at.After(now)
}

// alarm is something that happens to an item at a time, unless it changed before.
type alarm struct {
	it *Item
	s  *subscription // whose first lease ends; nil: due or expiry
}

func (q *queue) alarm(at time.Time, it *Item, s *subscription) {
	in := at.Sub(q.began)
	if in < q.alarms.Next() {
		q.ring.Give()
	}
	q.alarms.Push(in, 0, alarm{it, s})
}

// alarmExpiry sets the alarm for the end of an item's TTL, if it has one.
func (q *queue) alarmExpiry(it *Item) {
	if at := it.expires(); !at.IsZero() {
		q.alarm(at, it, nil)
	}
}
