package engine

import "time"

// advanceBudget bounds how much one step makes due, so that a million messages due at once do not stop a topic.
const advanceBudget = 4096

// advance brings the topic up to date: what is due by now, expired or lost takes effect.
func (t *topic) advance(now moment) {
	if t.next() > now.tick {
		return
	}
	left := advanceBudget
	for ; left > 0 && t.delayed.Next() <= now.tick; left-- {
		t.fanOut(t.delayed.Top(), now)
	}
	for ; left > 0 && tick(t.waiting.Next()) <= now.tick; left-- {
		it := t.waiting.First()
		it.g.becomeDue(it, now)
	}
	if t.leaseNext <= now.tick {
		t.loseLeases(now)
	}
	for ; left > 0 && t.expires.Next() <= now.tick; left-- {
		t.expire(t.expires.Top(), now)
	}
	for ; left > 0 && len(t.settled) > 0 && t.keptUntil() <= now.tick; left-- {
		t.trim(now)
	}
	t.ownIDs.forget(now.tick)
	t.dedupIDs.forget(now.tick)
}

// next returns when advance has something to do, or earlier.
func (t *topic) next() tick {
	next := min(t.delayed.Next(), tick(t.waiting.Next()), t.expires.Next(), t.leaseNext, t.ownIDs.first, t.dedupIDs.first)
	if len(t.settled) == 0 {
		return next
	}
	return min(next, t.keptUntil())
}

// arm sets the timer for what comes next. A timer that is armed for an earlier time is left alone: it costs one
// idle callback, where moving it would cost each settlement.
func (t *topic) arm(now moment) {
	next := t.next()
	if next >= t.armed || t.ended {
		return
	}
	wait := time.Duration(max(0, next-now.tick))
	switch {
	case t.timer == nil:
		t.e.timers.Add(1)
		t.timer = time.AfterFunc(wait, t.ring)
	case t.armed == never:
		t.e.timers.Add(1)
		t.timer.Reset(wait)
	case t.timer.Stop():
		t.timer.Reset(wait)
	default: // its callback waits for our lock, and will arm it
		return
	}
	t.armed = next
}

func (t *topic) ring() {
	defer t.e.timers.Done()
	now := t.e.now()
	t.mu.Lock()
	t.armed = never
	if t.ended {
		t.mu.Unlock()
		return
	}
	t.advance(now)
	t.unlock(now)
}
