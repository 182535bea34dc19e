package worker

import (
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Cancel drops one message that this worker holds, and reports whether it does. Where its handler runs, the context of
// that ends with ErrCancelled: the message is acknowledged if the handler succeeds all the same, dropped whatever else
// it returns, and dropped a second later if it does not return. Neither burns an attempt. One that has not started is
// dropped at once.
//
// A batch of several goes on for the others: only what becomes of the message changes.
func (w *Worker) Cancel(topic, group, id string) bool {
	if w == nil {
		return false
	}
	w.mu.Lock()
	e := w.engine
	w.mu.Unlock()
	if e == nil {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	for _, c := range e.consumers {
		if c.topic == topic && c.group == group {
			return c.cancelHeld(id, now) || c.cancelRunning(id, now)
		}
	}
	return false
}

// dropped is the outcome of a message that was cancelled.
func dropped(r *run) *settlement { return &settlement{Delivery: r.d, Outcome: driver.Drop} }

// cancelHeld drops a message that has not started.
func (c *consumer) cancelHeld(id string, now time.Duration) bool {
	wanted := func(r *run) bool { return r.d.ID == id && !c.leaseOver(r, now) }
	first := c.takeWaitingSuspects(wanted)
	if r := c.lanes.ready.remove(wanted); r != nil {
		first = append(first, r)
	}
	for _, r := range first {
		c.conclude(r, dropped(r), now)
	}
	if len(first) == 0 {
		r := c.lanes.removeQueued(wanted)
		if r == nil {
			return false
		}
		c.send(r, dropped(r))
	}
	c.settleSoon()
	c.e.offer(c)
	c.e.wakeSlot()
	c.makeRoom()
	return true
}

// cancelRunning ends the handler of a message, or keeps it from starting.
func (c *consumer) cancelRunning(id string, now time.Duration) (found bool) {
	for _, s := range c.e.pool.slots {
		lead := s.cur
		if lead == nil || lead.c != c || lead.abandoned {
			continue
		}
		n := 0
		lead.each(func(m *run) {
			n++
			if m.d.ID == id && !m.refused && (m.state == running || m.state == starting) {
				m.cancelled.Store(true)
				found = true
			}
		})
		if found && n == 1 && lead.state == running {
			lead.cancel(ErrCancelled)
			if !lead.overtime {
				lead.overtime, lead.timeoutAt = true, now+timeoutGrace
				c.e.watchUntil(lead.timeoutAt)
			}
		}
		if found {
			return true
		}
	}
	return false
}

// dropCancelled drops the members of a batch that were cancelled before it began, and before another takes them back.
func (c *consumer) dropCancelled(members []*run) {
	for _, m := range members {
		if m.cancelled.Load() {
			c.send(m, dropped(m))
		}
	}
}

// remove takes the first run that is wanted out of the list, or returns nil.
func (l *runList) remove(wanted func(*run) bool) (found *run) {
	all := *l
	*l = runList{}
	for r := all.pop(); r != nil; r = all.pop() {
		if found == nil && wanted(r) {
			found = r
		} else {
			l.push(r)
		}
	}
	return found
}

// removeQueued takes the first run that is wanted from behind the first of its key, or returns nil.
func (ls *lanes) removeQueued(wanted func(*run) bool) *run {
	for _, l := range ls.keys {
		if r := l.queue.remove(wanted); r != nil {
			ls.queued--
			return r
		}
	}
	return nil
}
