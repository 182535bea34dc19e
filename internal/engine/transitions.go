package engine

import (
	"time"

	"github.com/ferrymq/ferry/driver"
)

// move changes the state of an item, and all counts with it. Every change of state goes through it.
func (g *group) move(it *item, to itemState, now moment) {
	from := it.state
	if to != inflight { // claims are noted apart, several in one record
		g.t.touch(it.e)
	}
	if from == ready {
		g.ready.remove(it.at)
		g.countNormal(it, -1)
	}
	g.count[from]--
	g.count[to]++
	it.state = to
	switch {
	case to.live() && !from.live():
		g.t.gain(it.e)
	case from.live() && !to.live():
		g.t.lose(it.e)
	}
	if !to.live() {
		it.forgetLosses()
	}
	if to == ready {
		it.at = g.ready.add(now.tick)
		g.countNormal(it, 1)
	}
}

// countNormal counts the ready items of the normal lane that are in memory.
func (g *group) countNormal(it *item, n int) {
	if it.content().priority == driver.Normal {
		g.normal += n
	}
}

func (s itemState) live() bool { return s == ready || s == inflight || s == waiting }

// gain counts one more that has not settled the message.
func (t *topic) gain(e *entry) {
	if e.live++; e.live > 1 {
		return
	}
	t.stats.Messages++
	t.stats.Bytes += e.size()
	t.watchExpiry(e)
}

// lose is the opposite of gain.
func (t *topic) lose(e *entry) {
	if e.live--; e.live > 0 {
		return
	}
	t.stats.Messages--
	t.stats.Bytes -= e.size()
	t.unwatchExpiry(e)
}

// makeReady lets an item be claimed at its place.
func (g *group) makeReady(it *item, now moment) {
	g.move(it, ready, now)
	g.place(it)
}

// place lets a ready item be claimed when its turn comes, which may be behind what is cold.
func (g *group) place(it *item) {
	if until, waits := g.behindCold(it); waits {
		g.waitBehind(it, until)
		return
	}
	g.offer(it)
}

func (g *group) offer(it *item) {
	c := it.content()
	g.queue.Ready(&it.Node, c.key, c.priority.Lane())
}

// comeBack makes an item ready again at its old place, unless it expired meanwhile.
func (g *group) comeBack(it *item, now moment) {
	if it.e.expired(now) {
		g.expire(it, now)
		return
	}
	g.makeReady(it, now)
}

// wait makes an item wait. One that joins the tail when due, and any in relaxed order, lets its followers pass.
func (g *group) wait(it *item, due tick, toTail bool, now moment) {
	if it.e.expired(now) {
		g.expire(it, now)
		return
	}
	if toTail || !g.strict(it) {
		g.queue.Remove(&it.Node)
	} else {
		g.queue.Block(&it.Node, it.content().key)
	}
	g.move(it, waiting, now)
	it.at, it.Tail = due, toTail
	g.t.waiting.Add(&it.Node, int64(due))
}

// dueAfter makes an item due when some time has passed, or at once. It joins the tail then, or keeps its place.
func (g *group) dueAfter(it *item, after time.Duration, toTail bool, now moment) {
	if after > 0 {
		g.wait(it, now.after(after), toTail, now)
		return
	}
	if it.Tail = false; toTail {
		g.queue.Remove(&it.Node)
		it.Place = g.t.nextPlace()
	}
	g.comeBack(it, now)
}

// becomeDue ends a wait.
func (g *group) becomeDue(it *item, now moment) {
	g.stopWaiting(it)
	if it.Tail {
		it.Tail, it.Place = false, g.t.nextPlace()
	}
	g.makeReady(it, now)
}

// finish ends an item for its group: it is done and kept, or gone.
func (g *group) finish(it *item, to itemState, now moment) {
	g.detach(it)
	g.move(it, to, now)
	if to == done {
		it.at, it.record().ending.known = now.tick, true
	}
	if to == gone {
		it.e.forget(it)
		g.t.spend(it)
	}
	g.t.conclude(it.e, now)
}

// detach takes an item out of everything that its state put it into. Nobody holds it.
func (g *group) detach(it *item) {
	g.queue.Remove(&it.Node)
	g.stopWaiting(it)
	if it.state == dead {
		g.graves.remove(it.more.buried)
		it.more.dead = nil
	}
}

// stopWaiting takes an item out of those that wait, for their time or for what is cold.
func (g *group) stopWaiting(it *item) {
	switch {
	case !it.Waits():
	case it.state == waiting:
		g.t.waiting.Remove(&it.Node)
	default:
		g.behind.Remove(&it.Node)
	}
}

// forget unlinks an item from its entry.
func (e *entry) forget(it *item) {
	for p := &e.items; *p != nil; p = &(*p).sibling {
		if *p == it {
			*p = it.sibling
			return
		}
	}
}

// conclude removes or keeps a message that every group has settled.
func (t *topic) conclude(e *entry, now moment) {
	if e.state != fanned || !e.settled() {
		return
	}
	if t.config.Keep <= 0 {
		t.noteTrimmed(e)
	}
	if t.config.Keep <= 0 || e.items == nil {
		t.remove(e, now)
		return
	}
	t.cool(e)
	e.kept++
	t.settled = append(t.settled, settlement{seq: e.seq, at: now.tick, kept: e.kept})
}

// keptUntil returns when trim has something to do. Something is kept.
func (t *topic) keptUntil() tick {
	if most := t.config.KeepMost; most > 0 && int64(len(t.settled)) > most {
		return 0 // overdue
	}
	return moment{tick: t.settled[0].at}.after(t.config.Keep)
}

// trim removes the message that was settled first, unless a reset brought it back meanwhile.
func (t *topic) trim(now moment) {
	s := t.settled[0]
	t.settled = popFirst(t.settled)
	if e := t.log.get(s.seq); e != nil && e.state == fanned && e.kept == s.kept && e.settled() {
		t.noteTrimmed(e)
		t.remove(e, now)
	}
}

// noteTrimmed notes how far history is no longer complete.
func (t *topic) noteTrimmed(e *entry) {
	t.trimmed, t.trimmedDue = max(t.trimmed, e.seq), max(t.trimmedDue, e.due)
}

// remove takes a message out of the topic.
func (t *topic) remove(e *entry, now moment) {
	t.touch(e)
	t.log.remove(e.seq)
	if e.is(indexed) {
		t.ids.Remove(e)
		if e.is(ownID) {
			t.noteOwnID(e, now)
		}
	}
	e.state = atRest
	t.freed++
}
