package kafka

import "container/heap"

// lane is what can be claimed at one priority, by place. Most items come and go in order; only those that come back are sorted in.
type lane struct {
	fifo  []*item
	head  int    // of fifo
	first uint64 // number of fifo[0]
	live  int    // in fifo
	last  uint64 // place of the newest in fifo
	early laneHeap
}

// Values of item.inLane that are no index in the heap.
const (
	notInLane = -1
	inFifo    = -2
)

func (l *lane) len() int { return l.live + len(l.early) }

func (l *lane) push(it *item) {
	if l.live > 0 && it.place < l.last {
		heap.Push(&l.early, it)
		return
	}
	it.inLane, it.slot = inFifo, l.first+uint64(len(l.fifo))
	l.fifo = append(l.fifo, it)
	l.live++
	l.last = it.place
}

func (l *lane) remove(it *item) {
	if it.inLane >= 0 {
		heap.Remove(&l.early, it.inLane)
		return
	}
	l.fifo[it.slot-l.first] = nil
	it.inLane = notInLane
	if l.live--; l.live == 0 {
		l.first += uint64(len(l.fifo))
		l.fifo, l.head = l.fifo[:0], 0
		return
	}
	for l.fifo[l.head] == nil {
		l.head++
	}
	if l.head >= 1024 && 2*l.head >= len(l.fifo) {
		n := copy(l.fifo, l.fifo[l.head:])
		clear(l.fifo[n:])
		l.fifo = l.fifo[:n]
		l.first += uint64(l.head)
		l.head = 0
	}
}

// front is the item with the lowest place. The lane is not empty.
func (l *lane) front() *item {
	switch {
	case l.live == 0:
		return l.early[0]
	case len(l.early) > 0 && l.early[0].place < l.fifo[l.head].place:
		return l.early[0]
	}
	return l.fifo[l.head]
}

// laneHeap is the part of a lane that came out of order.
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
	*h, it.inLane = old[:len(old)-1], notInLane
	return it
}
