package kafka

import (
	"container/heap"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// itemState is where an item is in its queue.
type itemState uint8

const (
	gone itemState = iota
	ready
	inflight
	waiting
)

// item is a message that a group has not settled, in the process that owns its partition.
type item struct {
	p      *partition
	offset int64  // in the main topic; -1 when it has none
	order  int64  // before which offset of the main topic it comes
	side   string // its key in the side log; empty when it is only in the main topic
	at     int64  // where its newest record is in the side log
	msg    *driver.Message
	ref    driver.Ref

	attempts int // failed
	lost     int // leases
	rounds   int
	history  []driver.Failure
	cause    driver.Cause
	spared   bool // its TTL was lifted

	state   itemState
	place   uint64 // among its lane and key
	since   time.Time
	ends    time.Time // see expires
	due     time.Time // while waiting
	loose   bool      // waits without blocking its key
	tail    bool      // joins the tail when it is due
	counted bool      // in the window
	inSide  bool      // its body counts as one of the side log
	spilled bool      // its body is only in the side log
	careful bool      // its delivery is committed before it is made
	size    int       // of its body
	inLane  int       // index in its lane's heap, -1 when it is not offered
	claimed *claim
}

// expires is when its TTL ends, by the clock of this machine; zero for never.
func (it *item) expires() time.Time {
	if it.msg.TTL <= 0 || it.spared {
		return time.Time{}
	}
	if it.ends.IsZero() {
		it.ends = it.p.m.d.local(it.msg.PublishedAt.Add(it.msg.TTL))
	}
	return it.ends
}

func (it *item) expired(now time.Time) bool {
	at := it.expires()
	return !at.IsZero() && !at.After(now)
}

// claim is one lease of one item.
type claim struct {
	it       *item
	sub      *subscription
	number   uint64
	until    time.Time
	delivery *driver.Delivery
	settling bool // a settlement is on its way to the brokers
	ended    bool
}

// token names a claim. The nonce is of the member, so that no other process can make the same one.
type token struct {
	c    *claim
	name string
}

// String names the claim in logs.
func (t token) String() string { return t.name }

// laneHeap is what can be claimed at one priority, by place.
type laneHeap []*item

func (h laneHeap) Len() int           { return len(h) }
func (h laneHeap) Less(i, j int) bool { return h[i].place < h[j].place }
func (h laneHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i]; h[i].inLane, h[j].inLane = i, j }

// Push implements heap.Interface.
func (h *laneHeap) Push(x any) { it := x.(*item); it.inLane = len(*h); *h = append(*h, it) }

// Pop implements heap.Interface.
func (h *laneHeap) Pop() any {
	old := *h
	it := old[len(old)-1]
	old[len(old)-1] = nil
	*h, it.inLane = old[:len(old)-1], -1
	return it
}

// alarm is something that happens to an item at a time, unless it changed before.
type alarm struct {
	at time.Time
	it *item
	c  *claim // nil: due or expiry
}

type alarmHeap []alarm

func (h alarmHeap) Len() int           { return len(h) }
func (h alarmHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h alarmHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *alarmHeap) Push(x any) { *h = append(*h, x.(alarm)) }

// Pop implements heap.Interface.
func (h *alarmHeap) Pop() any {
	old := *h
	a := old[len(old)-1]
	*h = old[:len(old)-1]
	return a
}

func (q *queue) alarm(at time.Time, it *item, c *claim) {
	heap.Push(&q.alarms, alarm{at, it, c})
	q.poke()
}
