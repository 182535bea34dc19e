package engine

import "github.com/ferrymq/ferry/driver"

// delay puts a message aside until it is due.
func (t *topic) delay(e *entry) {
	t.touch(e)
	e.state = delayed
	t.stats.Delayed++
	t.delayed.Push(e.due, e.seq, e)
}

// takeOut ends the time in which a message belongs to the topic.
func (t *topic) takeOut(e *entry) {
	switch e.state {
	case delayed:
		t.delayed.RemoveAt(e.dueAt)
		t.stats.Delayed--
	case held:
		t.stats.Held--
	}
}

// fanOut gives a message that was delayed or held to the groups that exist now.
func (t *topic) fanOut(e *entry, now moment) {
	t.takeOut(e)
	if len(t.groups) == 0 {
		t.addGroup(driver.DefaultGroup, driver.Strict, false)
	}
	t.fan(e, now)
}

// fan gives a message to all groups.
func (t *topic) fan(e *entry, now moment) {
	t.touch(e)
	e.state, e.fan, e.due = fanned, t.nextPlace(), now.tick
	t.stats.Fanned++
	for _, g := range t.groups {
		g.receive(e, now)
	}
	t.lose(e) // it no longer belongs to the topic
}

// receive makes a message ready for one group.
func (g *group) receive(e *entry, now moment) {
	it := e.newItem(g)
	g.stats.Received++
	g.makeReady(it, now)
}

func (e *entry) newItem(g *group) *item {
	it := e.items
	if it == nil || it.g != nil { // the room that came with the entry is taken
		it = &item{sibling: e.items}
		e.items = it
	}
	it.e, it.g, it.Place = e, g, e.fan
	return it
}
