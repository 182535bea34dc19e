package gateway

import (
	"time"

	"github.com/ferrymq/ferry/driver"
)

// holding is a delivery that a client may still speak of: one that it holds, or whose lease was lost unsettled.
type holding struct {
	delivery *driver.Delivery // nil: there is none
	until    time.Time        // when its lease ends, if it is not extended
}

// blockSize is how many handles lie together.
const blockSize = 64

// block has the holdings of handles that follow each other.
type block struct {
	held [blockSize]holding
	n    int
}

// holdings are deliveries by handle. Handles are counted up and mostly spoken of in order, so that they lie in blocks:
// few steps look into the map, and a delivery that is held for long keeps no other.
type holdings struct {
	blocks map[uint64]*block
	n      int

	near   *block // the last one that was looked at
	nearAt uint64
}

func newHoldings() holdings { return holdings{blocks: map[uint64]*block{}} }

// block returns that of a handle, or nil.
func (x *holdings) block(handle uint64) *block {
	if at := handle / blockSize; x.near == nil || x.nearAt != at {
		x.near, x.nearAt = x.blocks[at], at
	}
	return x.near
}

// find returns what a handle stands for, or nil if that is nothing any more.
func (x *holdings) find(handle uint64) *holding {
	b := x.block(handle)
	if b == nil || b.held[handle%blockSize].delivery == nil {
		return nil
	}
	return &b.held[handle%blockSize]
}

// add makes a new handle stand for a delivery.
func (x *holdings) add(handle uint64, d *driver.Delivery) {
	b := x.block(handle)
	if b == nil {
		b = new(block)
		x.blocks[handle/blockSize], x.near = b, b
	}
	b.held[handle%blockSize] = holding{delivery: d, until: d.LeaseUntil}
	b.n++
	x.n++
}

// remove makes a handle stand for nothing.
func (x *holdings) remove(handle uint64) {
	if x.find(handle) == nil {
		return
	}
	b := x.block(handle)
	b.held[handle%blockSize] = holding{}
	x.n--
	if b.n--; b.n == 0 {
		delete(x.blocks, handle/blockSize)
		x.near = nil
	}
}

// lostBefore returns the handles whose leases ended before a time.
func (x *holdings) lostBefore(t time.Time) []uint64 {
	var handles []uint64
	for at, b := range x.blocks {
		for i := range b.held {
			if h := &b.held[i]; h.delivery != nil && h.until.Before(t) {
				handles = append(handles, at*blockSize+uint64(i))
			}
		}
	}
	return handles
}
