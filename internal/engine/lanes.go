package engine

import "github.com/ferrymq/ferry/driver"

// lane holds what any subscription of a group may claim at one priority. Of a key only one item is ever in a lane.
//
// New items arrive in order, so a list is enough for them. Those that return to their old place, and the followers of
// a key, arrive out of order; they are few, and in a heap.
type lane struct {
	fresh laneList
	back  itemHeap
}

func (l *lane) empty() bool { return l.fresh.head == nil && l.back.empty() }

// front returns the item with the lowest place, or nil.
func (l *lane) front() *item {
	it := l.fresh.head
	if !l.back.empty() {
		if b := l.back.top(); it == nil || b.place < it.place {
			return b
		}
	}
	return it
}

// offer puts it where every subscription can claim it.
func (g *group) offer(it *item) {
	n := it.content().priority.Lane()
	l := &g.lanes[n]
	g.stride.enter(n)
	it.inLane = uint8(n) + 1
	if l.fresh.tail == nil || l.fresh.tail.place < it.place {
		l.fresh.push(it)
	} else {
		l.back.push(tick(it.place), it.place, it)
	}
	g.wakeLater()
}

// withdraw takes it out of its lane, so that nobody can claim it, or out of those that wait.
func (g *group) withdraw(it *item) {
	switch {
	case it.inLane == 0:
		if it.heapAt != nowhere {
			g.t.waiting.removeAt(it.heapAt)
		}
		return
	case it.inLane == inBehind:
		g.behind.removeAt(it.heapAt)
	case it.heapAt != nowhere:
		g.lanes[it.inLane-1].back.removeAt(it.heapAt)
	default:
		g.lanes[it.inLane-1].fresh.remove(it)
	}
	it.inLane = 0
}

// pick chooses the lane that s claims from next, or -1 when nothing can be claimed. One that is empty has cold messages.
func (g *group) pick(s *subscription) int {
	best := -1
	for l := len(g.lanes) - 1; l >= 0; l-- {
		if g.lanes[l].empty() && (l != driver.Normal.Lane() || g.cold == 0) {
			continue
		}
		if s.o.StrictPriority {
			return l
		}
		if best < 0 || g.stride.pass[l] < g.stride.pass[best] {
			best = l
		}
	}
	return best
}

func (g *group) claimable() bool {
	for l := range g.lanes {
		if !g.lanes[l].empty() {
			return true
		}
	}
	return false
}

// stride shares claims between lanes by weight: each claim moves its lane forward by the inverse of the weight, and
// the lane that is furthest behind is next.
type stride struct {
	pass [4]uint64
	now  uint64
}

const strideScale = 1 << 32

// enter gives a lane that was empty no credit for that time.
func (s *stride) enter(lane int) { s.pass[lane] = max(s.pass[lane], s.now) }

// charge moves a lane forward by steps for each claim.
func (s *stride) charge(lane, claims int, steps *[4]uint64) {
	s.now = s.pass[lane]
	s.pass[lane] += uint64(claims) * steps[lane]
}

// stepsOf returns how far one claim moves each lane.
func stepsOf(weights [4]int) (steps [4]uint64) {
	for lane, w := range weights {
		steps[lane] = strideScale / uint64(w)
	}
	return steps
}
