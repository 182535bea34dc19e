package engine

import "slices"

// waiter is one call of Receive that found nothing.
type waiter struct {
	s          *subscription
	woken      chan struct{}
	prev, next *waiter // in a ring from and to the one that stands for the group, the longest waiting first; or nil
}

// awaited reports whether somebody waits.
func (g *group) awaited() bool { return g.waiters.next != &g.waiters }

// queueUp makes the caller of Receive wait. Before unlocking nobody can miss it.
func (s *subscription) queueUp() *waiter {
	w := s.spare
	if s.spare = nil; w == nil {
		w = &waiter{s: s, woken: make(chan struct{}, 1)}
	}
	end := &s.g.waiters
	w.prev, w.next = end.prev, end
	w.prev.next, end.prev = w, w
	s.waiters = append(s.waiters, w)
	return w
}

func (w *waiter) dequeue() {
	w.prev.next, w.next.prev = w.next, w.prev
	w.prev, w.next = nil, nil
	w.s.waiters = slices.DeleteFunc(w.s.waiters, func(o *waiter) bool { return o == w })
}

func (w *waiter) wake() {
	w.dequeue()
	w.woken <- struct{}{} // has room: it is waked once each time it queues up
}

// wake wakes one waiting call of this subscription.
func (s *subscription) wake() {
	if len(s.waiters) > 0 {
		s.waiters[0].wake()
	}
}

// wakeNow wakes up to n calls that can claim something.
func (g *group) wakeNow(n int) {
	if g.paused || g.t.paused {
		return
	}
	for w := g.waiters.next; w != &g.waiters && n > 0; {
		next := w.next
		if !w.s.full() {
			w.wake()
			n--
		}
		w = next
	}
}
