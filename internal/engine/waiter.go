package engine

import "slices"

// waiter is one call of Receive that found nothing.
type waiter struct {
	s          *subscription
	woken      chan struct{}
	prev, next *waiter
	queued     bool
}

// waiterList holds the waiters of a group, the longest waiting first.
type waiterList struct{ head, tail *waiter }

// queueUp makes the caller of Receive wait. Before unlocking nobody can miss it.
func (s *subscription) queueUp() *waiter {
	w := s.spare
	if s.spare = nil; w == nil {
		w = &waiter{s: s, woken: make(chan struct{}, 1)}
	}
	l := &s.g.waiters
	w.queued, w.prev = true, l.tail
	if l.tail != nil {
		l.tail.next = w
	} else {
		l.head = w
	}
	l.tail = w
	s.waiters = append(s.waiters, w)
	return w
}

func (w *waiter) dequeue() {
	l := &w.s.g.waiters
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		l.head = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		l.tail = w.prev
	}
	w.prev, w.next, w.queued = nil, nil, false
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
	for w := g.waiters.head; w != nil && n > 0; {
		next := w.next
		if !w.s.full() {
			w.wake()
			n--
		}
		w = next
	}
}

// wakeAll wakes every waiting call of the group, after a pause.
func (g *group) wakeAll() {
	for g.waiters.head != nil {
		g.waiters.head.wake()
	}
}
